package awscheck

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// No emulator throttles an item, so these answers are made up.
func TestTheAnswersAboutAThrottledKey(t *testing.T) {
	h := &hammered{began: time.Now().Add(-2 * time.Second), left: 100, answers: map[string]int{}, windows: map[int64]int{}}
	for _, a := range []answer{
		{Allowed: true, Reason: "ok", WindowKey: 7}, {Allowed: true, Reason: "ok", WindowKey: 7}, {Allowed: true, Reason: "ok", WindowKey: 8},
		{Reason: "limited", WindowKey: 8}, {ErrorType: "Unavailable"}, {ErrorType: "Unavailable"},
	} {
		h.note(a, nil)
	}
	h.note(answer{}, errors.New("too many requests"))
	got := h.figures()
	if got["throttledAfterMillis"] < 2000 || got["callsPerSecond"] > 3.5 {
		t.Errorf("%v, want at least 2000 ms and at most 3.5 a second", got)
	}
	delete(got, "throttledAfterMillis")
	delete(got, "callsPerSecond")
	want := Figures{"ok": 3, "limited": 1, "Unavailable": 2, "none": 1, "mostInAWindow": 2}
	if diff := cmp.Diff(want, got); diff != "" || h.wrong != "" || !h.more() {
		t.Errorf("wrong %q; (-want +got):\n%s", h.wrong, diff)
	}
	h.began = h.began.Add(-time.Minute)
	if h.more() {
		t.Error("it goes on a minute after the first answer Unavailable")
	}
	if h.note(answer{ErrorType: "ValidationError"}, nil); h.wrong == "" {
		t.Error("a ValidationError was not noticed")
	}
}

func TestAnAgentThatDoesNotDecide(t *testing.T) {
	ok := answer{Allowed: true, Reason: "ok"}
	for name, tt := range map[string]struct {
		p     probed
		right bool
	}{
		"right":           {probed{Listening: "200", Answers: []answer{ok, ok}}, true},
		"not there yet":   {probed{Listening: "Connection refused", Answers: []answer{ok, ok}}, false},
		"without a table": {probed{Listening: "200", Answers: []answer{ok, {Allowed: true, Reason: "unavailable"}}}, false},
		"too few answers": {probed{Listening: "200", Answers: []answer{ok}}, false},
		"a failed probe":  {probed{ErrorType: "TimeoutError"}, false},
	} {
		if err := tt.p.answered(2); (err == nil) != tt.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAsManyCallsAsTheAccountAllows(t *testing.T) {
	var busy, most, calls atomic.Int64
	err := (&Stack{parallel: 3}).each(20, func(i int) error {
		most.Store(max(most.Load(), busy.Add(1)))
		defer busy.Add(-1)
		calls.Add(1)
		time.Sleep(time.Millisecond)
		if i == 4 {
			return errors.New("the fifth")
		}
		return nil
	})
	if calls.Load() != 20 || most.Load() > 3 || err == nil || err.Error() != "the fifth" {
		t.Errorf("%d calls, at most %d at once, %v, want 20, 3 and the error of the fifth", calls.Load(), most.Load(), err)
	}
}
