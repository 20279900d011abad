package guard_test

import (
	"testing"
	"time"
)

// release is the answer to a release of create_post that leaves used counted.
func release(used int) fields { return figures(true, "ok", used, fields{"op": "release"}) }

func TestAReleaseGivesBackOnce(t *testing.T) {
	b := newBench(t)
	got := b.want(`{"count": 3, "requestId": "r1"}`, counted(3, 3))
	if got["at"] != float64(startMillis) || got["requestId"] != "r1" {
		t.Errorf("the receipt is %v, %v, want the time and the id of the check", got["at"], got["requestId"])
	}
	back := `{"op": "release", "requestId": "r1", "count": 2, "at": 1700000040000}`
	b.now = start.Add(time.Second)
	for range 2 { // the repeat changes nothing
		b.want(back, release(1))
	}
	b.want(`{"op": "release", "requestId": "other", "at": 1700000040000}`, release(1))
	b.want(`{"requestId": "r1"}`, counted(1, 2)) // a released id is new again
	b.now = start.Add(time.Minute)               // now the release is too late
	b.want(back, figures(true, "ok", 0, fields{"op": "release", "windowKey": window + 1, "resetAt": end + 60000}))
}

// A higher limit may have counted more than the present one allows.
func TestAReleaseMayExceedTheLimit(t *testing.T) {
	b := newBench(t)
	b.mustAsk(`{"tier": "premium", "count": 15, "requestId": "r1"}`)
	b.want(`{"op": "release", "count": 15, "requestId": "r1", "at": 1700000040000}`, release(0))
}

func TestReleaseAndResetFailDuringAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t)
		b.DenyOutage = deny
		b.store.away = errAway
		for _, event := range []string{`{"op": "reset"}`, `{"op": "release", "requestId": "r1", "at": 1700000040000}`} {
			_, err := b.ask(event)
			b.wantUnavailable(event, "the table does not exist", err)
		}
	}
}
