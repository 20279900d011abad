package simulate_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"
)

// stats count what happened in runs. The keys are the texts of the page's figures.
type stats map[string]int

const (
	writes         = "writes that the store performed"
	later          = "of these, that count at a later time, which a clock ahead has written"
	twice          = "checks with subjects that were sent twice, side by side"
	marks          = "marks of what another attempt had counted"
	lateMarks      = "marks that came too late, because the other attempt had given back"
	idsOnly        = "ids of refused checks that were removed, although nothing counted any more"
	givenBackAlone = "counts in memory that were given back there"
	oldReceipts    = "releases by an older receipt of slots that were renewed"
	similar        = "releases by a receipt of the same seconds that is not the check's"
	newPlaces      = "places that repeats got instead of one whose window was over"
	skippedPlaces  = "writes that skipped places which their instance gave from memory"
	beyond         = "broken promises in those runs"
	failedAlone    = "of these, of a key that fails alone"
	slowly         = "of these, on a slow table"
	halfRuns       = "runs in which half of the table or of the instances works"
	blocked        = "calls by somebody who is blocked, or for a subject that is"
	sideBySide     = "of these, with two versions of a limit side by side"
)

// happens lists what runs count, in the order of the page. In enough runs, all of it happens.
var happens = []string{
	"runs",
	"of these, with a page of limits that was drawn",
	"pages that were drawn and are not valid",
	"decisions",
	"of these, check requests",
	"of these, release requests",
	"of these, renew requests",
	"of these, reset requests",
	"of these, status requests",
	"decided from memory in an outage",
	"refusals repeated from memory",
	"callers who gave up",
	"attempts",
	"of these, lost request",
	"of these, lost answer",
	"of these, delivered late",
	"of these, throttled",
	"of these, 5xx before the write",
	"of these, 5xx after the write",
	"of these, hang",
	"of these, denied",
	failedAlone,
	slowly,
	writes,
	"of these, renewals",
	"of these, to the item of a group",
	"decisions that count in several items, such as that of a room",
	"counts that they gave back, because a later item refused",
	"instances killed",
	"instances frozen",
	"of these, for 12 to 40 s",
	"writes that took a lease of a prepaid limit",
	"refusals that recorded a slower pace of a bucket",
	"checks decided from a lease",
	"actions that a room's lease gave",
	"actions of leases that nobody got",
	"releases that gave something back after more than 28 s, because of Hold",
	numbered,
	tooLow,
	byGrant,
	"answers delayed",
	newPlaces,
	skippedPlaces,
	"answers duplicate",
	"answers expired",
	"answers limited",
	"answers ok",
	"answers unavailable",
	"waits that a copy of the state was asked about, at the time and a millisecond earlier",
	"changes of the live limits",
	"changes of the blocks",
	blocked,
	"decisions in shadow mode",
	"calls while the mode is off",
	"deploys that change windows",
	"limits refused, because they can't share a count",
	"releases refused, because of their count",
	"decisions about an item that can't be read",
	"clocks that stepped",
	"runs that begin before 2020",
	"expired items deleted",
	"attempts counted after their request was refused, because they arrived late",
	later,
	twice,
	"receipts that no check has",
	"receipts of another check that freed slots of their own millisecond",
	marks,
	lateMarks,
	idsOnly,
	givenBackAlone,
	locks,
	clears,
	bareClears,
	splits,
	forbidden,
	oldReceipts,
	similar,
	"runs with clocks up to 90 s apart, for which nothing is promised",
	beyond,
	halfRuns,
	sideBySide,
	"spells of a " + string(slowTable),
	"spells of a " + string(lossyTable),
	"spells of a " + string(failingKey),
	"spells of a " + string(freeze),
}

func (s stats) add(o stats) {
	for what, n := range o {
		s[what] += n
	}
}

// figures returns what the runs are proof of. It fails the test if something that runs are
// about never happened.
func (s stats) figures(t *testing.T, subjects int) []findings.Figure {
	t.Helper()
	list := []findings.Figure{
		{What: "policies (each kind, each pair of kinds, all kinds together), beside pages of limits that were drawn", Value: strconv.Itoa(subjects)},
		{What: "violations", Value: "0"},
	}
	for _, what := range happens {
		if s[what] == 0 {
			t.Errorf("no run counts %s", what)
		}
		list = append(list, findings.Figure{What: what, Value: strconv.Itoa(s[what])})
	}
	for what := range s {
		if !slices.Contains(happens, what) {
			t.Errorf("runs count %s, and no figure shows it", what)
		}
	}
	return list
}
