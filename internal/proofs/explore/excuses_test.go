package explore

// An exception is something that the properties let pass. The contract states
// the first group. It does not state the second group.
type exception string

const (
	refusedAfterRoom    exception = "an instance refuses from memory up to a second after another one released or reset"
	okWithoutReceipt    exception = "a repeat whose first attempt has an unknown outcome is ok, without a receipt"
	countedAfterRelease exception = "an attempt that arrives only after its release is counted"
	sameMillisecond     exception = "a release in a log, repeated after more than 20 s, gives back another action of the same millisecond"
	refusedWhileHot     exception = "an instance refuses from memory what it saw no room for on a hot prepaid key up to a second ago, even if actions came back"

	countedAfterRefusal exception = "an attempt is late, its request is told limited, another request is released, and then the attempt is counted"
	refusedAfterLowered exception = "a repeat on an instance whose limit was lowered is refused from memory for up to a second"
)

// stated and unstated list all exceptions.
var (
	stated   = []exception{refusedAfterRoom, okWithoutReceipt, countedAfterRelease, sameMillisecond, refusedWhileHot}
	unstated = []exception{countedAfterRefusal, refusedAfterLowered}
)

// excuse notes that an exception was needed.
func (x *explorer) excuse(e exception) { x.excuses[e]++ }
