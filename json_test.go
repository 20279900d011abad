package guards_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards"
)

// A text is written as it is, as far as JSON allows. Outside JSON, < and & are no danger.
func TestADecisionEscapesOnlyWhatItMust(t *testing.T) {
	for text, want := range map[string]string{
		"at most 1 & not <more>":                 `"at most 1 & not <more>"`,
		"Höchstens 1 & nicht <mehr>\u2028😀":      `"Höchstens 1 & nicht <mehr>` + "\u2028" + `😀"`,
		"a \"quoted\" text & a \\, <two\nlines>": `"a \"quoted\" text & a \\, <two\nlines>"`,
		"half a character: \xc3":                 `"half a character: \ufffd"`,
	} {
		if got, err := (guards.Decision{Message: text}).MarshalJSON(); err != nil || !strings.Contains(string(got), `"message":`+want+`}`) {
			t.Errorf("%q: %s, %v, want the message %s", text, got, err, want)
		}
	}
}

// What a decision writes is JSON, and reads as the same decision, whatever its texts are.
func TestADecisionReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, number := rapid.String(), rapid.Int64()
		figures := rapid.Custom(func(t *rapid.T) guards.Figures {
			return guards.Figures{
				Name: text.Draw(t, "name"), Limit: number.Draw(t, "limit"), ActivityCount: number.Draw(t, "count"),
				Remaining: number.Draw(t, "remaining"), WaitTime: number.Draw(t, "wait"), ResetAt: number.Draw(t, "reset"),
				Locked: rapid.Bool().Draw(t, "locked"), Crossed: number.Draw(t, "crossed"),
			}
		})
		f := figures.Draw(t, "figures")
		want := guards.Decision{
			Allowed: rapid.Bool().Draw(t, "allowed"), Reason: guards.Reason(text.Draw(t, "reason")), UserID: text.Draw(t, "user"),
			Activity: text.Draw(t, "activity"), Op: rapid.SampledFrom([]guards.Op{guards.Check, guards.Status, guards.Release, guards.Renew, guards.Reset}).Draw(t, "op"), WindowKey: number.Draw(t, "window"),
			At: number.Draw(t, "at"), RequestID: text.Draw(t, "id"), HeldUntil: number.Draw(t, "held"), Message: text.Draw(t, "message"),
			Display: text.Draw(t, "display"), ReadyAt: number.Draw(t, "ready"), Enqueued: number.Draw(t, "enqueued"),
			Crossed: f.Crossed, LimitedBy: f.Name, Version: text.Draw(t, "version"),
		}
		if n := rapid.IntRange(0, 3).Draw(t, "limits"); n > 0 {
			want.Limits = rapid.SliceOfN(figures, n, n).Draw(t, "each")
		}
		if want.Op == guards.Check || want.Op == guards.Renew {
			want.Granted = number.Draw(t, "granted")
		}
		if f.Limit != 0 {
			want.Limit, want.ActivityCount, want.Remaining, want.Locked = f.Limit, f.ActivityCount, f.Remaining, f.Locked
		}
		if f.Limit != 0 || want.ReadyAt != 0 || f.ResetAt != 0 {
			want.WaitTime, want.ResetAt = f.WaitTime, f.ResetAt
		}
		written, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var read guards.Decision
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s reads back with a difference (-want +got):\n%s", written, diff)
		}
	})
}
