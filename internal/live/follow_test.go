package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A bench is a follower and its table, in a bubble of test time.
type bench struct {
	*table
	*Follower
	t *testing.T
}

// follow runs a test with a follower of an empty table.
func follow(t *testing.T, test func(*testing.T, bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		table := new(table)
		test(t, bench{table, &Follower{Source: table, Guards: cricket.All}, t})
	})
}

// set makes rate the live limit of create_post. The code's limit is 10/1m.
func (b bench) set(rate string) {
	b.t.Helper()
	b.put(fmt.Sprintf(`{"create_post": {"limit": %q}}`, rate))
	b.reads = 0
}

// after lets a request come after a time, and checks the limit of create_post and how
// often the table was read for it.
func (b bench) after(wait time.Duration, limit int64, reads int) {
	b.t.Helper()
	time.Sleep(wait)
	b.reads = 0
	b.Refresh(b.t.Context(), 0)()
	b.check(limit, reads)
}

// look is after for a request that comes when the next look is due.
func (b bench) look(limit int64, reads int) {
	b.t.Helper()
	b.after(30*time.Second, limit, reads)
}

func (b bench) check(limit int64, reads int) {
	b.t.Helper()
	a, _ := b.Limits().Activity(activityOf(b.t, "create_post"))
	if got := a.Limit.Max(); got != limit || b.reads != reads {
		b.t.Errorf("the limit is %d after %d reads, want %d after %d", got, b.reads, limit, reads)
	}
}

func TestLimitsAreFollowed(t *testing.T) {
	follow(t, func(_ *testing.T, b bench) {
		b.set("20/1m")
		b.check(10, 0) // the code's, before the first look
		b.look(20, 1)
		b.after(0, 20, 0)
		b.set("5/1m")
		b.after(29*time.Second, 20, 0) // not due yet
		b.after(time.Second, 5, 1)
		b.look(5, 1) // nothing new
	})
}

func TestSettingsThatCannotBeReadKeepTheLastGoodOnes(t *testing.T) {
	follow(t, func(_ *testing.T, b bench) {
		b.set("5/1m")
		b.look(5, 1)
		b.err = errors.New("away")
		b.look(5, 1)
		b.err = nil
		for i, document := range []string{`{`, `{"activities": {"create_post": {"limit": "none"}}}`, `{"limits": {}}`} {
			b.Stored = Stored{Version: 9 + int64(i), Document: []byte(document)}
			b.look(5, 1)
		}
		// An activity that the code does not have is no reason to lose the
		// rest.
		b.Stored = Stored{Version: 12, Document: []byte(`{"activities": {"gone": {"limit": "1/1m"}, "create_post": {"limit": "7/1m"}}}`)}
		b.look(7, 1)
	})
}

// One lost read must not make an instance a minute late.
func TestALookThatFailedIsRepeatedSoon(t *testing.T) {
	follow(t, func(_ *testing.T, b bench) {
		b.set("5/1m")
		b.err = errors.New("away")
		b.look(10, 1)
		b.err = nil
		b.after(4*time.Second, 10, 0) // not due yet
		b.after(time.Second, 5, 1)
		b.after(29*time.Second, 5, 0) // a look that succeeded lasts for 30 s
	})
}

// A look that finds an older document, or none, reads once more with a
// consistent read before the follower applies the change.
func TestSettingsThatGoBackAreFollowed(t *testing.T) {
	seven := Stored{Version: 1, Document: []byte(`{"activities": {"create_post": {"limit": "7/1m"}}}`)}
	for name, tt := range map[string]struct {
		now   Stored
		limit int64
	}{
		"deleted, which means no live limits":               {Stored{}, 10},
		"restored with a lower version":                     {seven, 7},
		"restored, and then changed up to the same version": {Stored{Version: 2, Document: seven.Document}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, func(_ *testing.T, b bench) {
				b.set("30/1m")
				b.set("20/1m")
				b.look(20, 1)
				b.Stored = tt.now
				b.look(tt.limit, 2)
				b.look(tt.limit, 1) // it is now the last good one
				b.set("25/1m")
				b.look(25, 1)
			})
		})
	}
}

func TestAnEventuallyConsistentReadThatGoesBackChangesNothing(t *testing.T) {
	follow(t, func(_ *testing.T, b bench) {
		b.set("20/1m")
		first := b.Stored
		b.set("5/1m")
		b.look(5, 1)
		for _, stale := range []Stored{first, {}} {
			b.stale = &stale
			b.look(5, 2)
		}
		b.stale = nil
		b.look(5, 1)
	})
}

// The first read returns an older document, and the consistent read that would
// confirm it fails. Then the follower changes nothing.
func TestAConfirmationThatFailsChangesNothing(t *testing.T) {
	follow(t, func(_ *testing.T, b bench) {
		b.set("20/1m")
		b.look(20, 1)
		b.Stored = Stored{}
		b.failFrom = 2
		b.look(20, 2)
		b.failFrom = 0
		b.look(10, 2)
	})
}

func TestASlowLookDoesNotDelayTheAnswer(t *testing.T) {
	follow(t, func(t *testing.T, b bench) {
		b.set("20/1m")
		b.slow = 500 * time.Millisecond
		b.takes(0, 20*time.Millisecond)
		if b.Limits() != nil {
			t.Error("the look ended before it could")
		}
		time.Sleep(time.Second)
		if b.Limits() == nil {
			t.Error("the result of a slow look is lost")
		}
	})
}

// A caller that does not ask the table waits for a slow look, for at most a
// twentieth of the time.
func TestALookAloneIsWaitedFor(t *testing.T) {
	follow(t, func(_ *testing.T, b bench) {
		b.set("20/1m")
		b.slow = 900 * time.Millisecond
		b.takes(time.Second, 900*time.Millisecond)
		b.check(20, 1)
		b.takes(time.Second, 0) // not due
		b.err = errors.New("away")
		b.slow = 999 * time.Millisecond
		time.Sleep(29100 * time.Millisecond)
		b.takes(time.Second, 999*time.Millisecond)
		time.Sleep(4001 * time.Millisecond)
		for range 3 { // a look that failed is repeated after 5 s
			b.takes(time.Second, 250*time.Millisecond)
			time.Sleep(4750 * time.Millisecond)
			synctest.Wait() // the look has ended
		}
	})
}

// takes checks how long an answer waits for a look, which it can do until longest.
func (b bench) takes(longest, want time.Duration) {
	b.t.Helper()
	began := time.Now()
	b.Refresh(b.t.Context(), longest)()
	if took := time.Since(began); took != want {
		b.t.Errorf("the answer waited %v, want %v", took, want)
	}
}

// A table keeps settings in memory. Its eventually consistent reads return
// stale, if stale is set.
type table struct {
	Stored
	stale    *Stored
	err      error
	failFrom int           // reads from this one on fail; 0: none
	slow     time.Duration // for each read
	reads    int

	blocks    Stored
	blocksErr error
}

func (t *table) Settings(_ context.Context, consistent bool) (Stored, error) {
	t.reads++
	time.Sleep(t.slow)
	if t.failFrom > 0 && t.reads >= t.failFrom {
		return Stored{}, errors.New("away")
	}
	if t.stale != nil && !consistent {
		return *t.stale, t.err
	}
	return t.Stored, t.err
}

func (t *table) Blocks(context.Context, bool) (Stored, error) { return t.blocks, t.blocksErr }

// logged returns a follower of a table that logs to log.
func logged(table *table, guards limits.Guards) (f *Follower, log *bytes.Buffer) {
	log = new(bytes.Buffer)
	return &Follower{Source: table, Guards: guards, Log: slog.New(slog.NewTextHandler(log, nil))}, log
}

// mustRead reads the settings, which the guard can follow.
func mustRead(t *testing.T, f *Follower) {
	t.Helper()
	testkit.OK(t, f.Read(t.Context()))
}

// reports tells whether a log has a text, without the quotation marks' backslashes.
func reports(log *bytes.Buffer, text string) bool {
	return strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), text)
}

// put changes the document to these overrides, a JSON object.
func (t *table) put(overrides string) {
	t.Stored = Stored{Version: t.Version + 1, Document: fmt.Appendf(nil, `{"activities": %s}`, overrides)}
}

func activityOf(tb testing.TB, name string) limits.Activity {
	tb.Helper()
	_, a, ok := cricket.All.Activity(name)
	if !ok {
		tb.Fatalf("no activity %s", name)
	}
	return a
}

// An instance does not wait until its clock shows its old time again: after a
// step back the next decision looks.
//
//	12:00  a look finds 20/1m
//	11:00  the clock has stepped back, and the limit is now 5/1m
//	11:00  the next look finds it
//
// The same holds if the look before failed, so that the next one is due 5 s later.
func TestLimitsAreReadAfterTheClockSteppedBack(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error // of the look before
		limit int64 // after it
	}{
		"from a look that found limits": {nil, 20},
		"from a look that failed":       {errors.New("away"), 10},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, func(_ *testing.T, b bench) {
				back := time.Duration(0)
				b.Now = func() time.Time { return time.Now().Add(-back) }
				b.set("20/1m")
				b.err = tt.err
				b.look(tt.limit, 1)
				b.err = nil
				b.set("5/1m")
				for _, back = range []time.Duration{time.Second, time.Hour} {
					b.after(0, 5, 1)
				}
			})
		})
	}
}

// The document can contain user ids in any place. None of them reaches the log.
func TestTheLogRepeatsNothingOfTheDocument(t *testing.T) {
	const canary = "canary-user-4711"
	for _, document := range []string{
		`{"grants":[{"userId":"` + canary + `","until":"` + canary + `"}]}`,
		`{"` + canary + `":1}`,
		`{"activities":{"` + canary + `":{"limit":"20/1m"}}}`,
	} {
		f, log := logged(&table{Stored: Stored{Version: 1, Document: []byte(document)}}, cricket.All)
		err := f.Read(t.Context())
		if strings.Contains(log.String(), canary) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: log %s, error %v", document, log, err)
		}
	}
}

// Each look that fails has one line in the log, and one that succeeds has none.
func TestALookThatFailsIsLogged(t *testing.T) {
	follow(t, func(t *testing.T, b bench) {
		log := new(bytes.Buffer)
		b.Log = slog.New(slog.NewTextHandler(log, nil))
		b.set("5/1m")
		for _, tt := range []struct {
			err   error
			lines int
		}{{errors.New("away"), 1}, {nil, 1}, {&DocumentError{Cause: errors.New("canary-user-4711")}, 2}, {nil, 2}} {
			b.err = tt.err
			time.Sleep(30 * time.Second)
			b.Refresh(t.Context(), 0)()
			if got := strings.Count(log.String(), `level=WARN msg="live limits not followed" not=read`); got != tt.lines || strings.Contains(log.String(), "canary") {
				t.Errorf("after %v: %d lines, want %d:\n%s", tt.err, got, tt.lines, log)
			}
		}
	})
}
