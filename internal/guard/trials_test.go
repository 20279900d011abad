package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
)

// ChangeSettings, ChangeBlocks and SettingsHistory make a settings a table that operators can change.
func (s *settings) ChangeSettings(_ context.Context, _ int64, after live.Stored, _ liveedit.Change) error {
	s.Stored = after
	return nil
}

func (s *settings) ChangeBlocks(_ context.Context, _ int64, after live.Stored, _ liveedit.Change) error {
	s.blocks = after
	return nil
}

func (s *settings) Note(context.Context, liveedit.Change) error { return nil }

func (s *settings) SettingsHistory(context.Context) ([]liveedit.Change, error) { return nil, nil }

// tried are the activities whose limits are tried. Each has 10/1m.
var tried = limits.Guard{Name: "tried-guard", Message: "m", Activities: []limits.Activity{
	{Name: "post", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"pro": policy.Must("10/1m")}},
	{Name: "write", Limit: policy.Must("1000/1m"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"pro": policy.Must("10/1m")}}}},
	{Name: "sell", Group: "shop", Limit: policy.Must("deals: 20/1m cost 2, day: 5000/1d")},
	{Name: "buy", Group: "shop", Limit: policy.Must("deals: 10/1m")},
}}

// An operator tries a limit below a live one. A count that fitted before the trial is
// reported and goes through, and one that did not fit is still an error.
//
// Each edit is the name, the tier, the limit and the mode of "guards limits set", or
// unset and a name.
func TestALowerLimitThatIsTriedAfterALiveOneRefusesNoCount(t *testing.T) {
	const post, write, pro = `"activity":"post"`, `"activity":"write","subjects":{"room":"r"}`, `,"tier":"pro"`
	for name, tt := range map[string]struct {
		mode  Mode
		edits []string
		event string
		fits  int // the highest count that is no error, and above the limit
	}{
		"the limit before":                       {edits: []string{"post,,50/1m,", "post,,20/1m,shadow"}, event: post, fits: 50},
		"the limit first and then the mode":      {edits: []string{"post,,50/1m,", "post,,,shadow", "post,,20/1m,"}, event: post, fits: 50},
		"the same limit again":                   {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,,20/1m,shadow"}, event: post, fits: 50},
		"another part changes":                   {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,pro,90/1m,", "buy,,,off"}, event: post, fits: 50},
		"a second trial":                         {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,,5/1m,"}, event: post, fits: 50},
		"a lower and a higher trial":             {edits: []string{"post,,50/1m,", "post,,5/1m,shadow", "post,,20/1m,"}, event: post, fits: 50},
		"switched off meanwhile":                 {edits: []string{"post,,50/1m,", "post,,20/1m,shadow", "post,,,off", "post,,,shadow"}, event: post, fits: 50},
		"lowered before the trial":               {edits: []string{"post,,50/1m,", "post,,30/1m,", "post,,20/1m,shadow"}, event: post, fits: 30},
		"lowered, and nothing else is tried":     {edits: []string{"post,,50/1m,", "post,,30/1m,", "post,,,shadow"}, event: post, fits: 30},
		"enforced between two trials":            {edits: []string{"post,,50/1m,", "post,,30/1m,shadow", "post,,,enforce", "post,,20/1m,shadow"}, event: post, fits: 30},
		"unset between two trials":               {edits: []string{"post,,50/1m,", "post,,30/1m,shadow", "unset,post", "post,,5/1m,shadow"}, event: post, fits: 10},
		"the function is in shadow mode":         {mode: Shadow, edits: []string{"post,,50/1m,", "post,,20/1m,", "post,,15/1m,"}, event: post, fits: 50},
		"the code's limit, if it is higher":      {edits: []string{"post,,9/1m,", "post,,5/1m,shadow"}, event: post, fits: 10},
		"a tier":                                 {edits: []string{"post,pro,50/1m,", "post,pro,20/1m,shadow"}, event: post + pro, fits: 50},
		"a tier, and not the ordinary limit":     {edits: []string{"post,pro,50/1m,", "post,pro,20/1m,shadow"}, event: post, fits: 10},
		"the ordinary limit, and not a tier":     {edits: []string{"post,,50/1m,", "post,,20/1m,shadow"}, event: post + pro, fits: 10},
		"a tier that only a live limit has":      {edits: []string{"post,new,50/1m,", "post,new,20/1m,shadow"}, event: post + `,"tier":"new"`, fits: 50},
		"such a tier is unset":                   {edits: []string{"post,,,shadow", "post,new,50/1m,", "unset,post,new"}, event: post + `,"tier":"new"`, fits: 50},
		"a tier that nothing has":                {edits: []string{"post,,50/1m,", "post,,20/1m,shadow"}, event: post + `,"tier":"none"`, fits: 50},
		"a subject":                              {edits: []string{"write/room,,50/1m,", "write,,,shadow", "write/room,,20/1m,"}, event: write, fits: 50},
		"a tier of a subject":                    {edits: []string{"write/room,pro,50/1m,", "write,,,shadow", "write/room,pro,20/1m,"}, event: write + pro, fits: 50},
		"a subject lowered before the trial":     {edits: []string{"write/room,,50/1m,", "write/room,,30/1m,", "write,,,shadow", "write/room,,20/1m,"}, event: write, fits: 30},
		"a limit of a group":                     {edits: []string{"shop.deals,,50/1m,", "buy,,,shadow", "shop.deals,,20/1m,"}, event: `"activity":"buy"`, fits: 50},
		"a limit of a group, with a cost":        {edits: []string{"shop.deals,,100/1m,", "sell,,,shadow", "shop.deals,,20/1m,"}, event: `"activity":"sell"`, fits: 50},
		"an activity's own instead of a group's": {edits: []string{"shop.deals,,50/1m,", "buy,,deals: 20/1m,shadow"}, event: `"activity":"buy"`, fits: 50},
	} {
		t.Run(name, func(t *testing.T) {
			withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
				b.Guard, b.Mode = tried, tt.mode
				b.Live.Guards = limits.Guards{tried}
				for _, text := range tt.edits {
					s.edit(t, text)
				}
				b.wantFits(tt.event, tt.fits)
			})
		})
	}
}

// edit changes the settings as TestALowerLimitThatIsTriedAfterALiveOneRefusesNoCount
// writes it.
func (s *settings) edit(t *testing.T, text string) {
	t.Helper()
	f := append(strings.Split(text, ","), "", "")
	err := liveedit.Edit(t.Context(), s, limits.Guards{tried}, liveedit.Change{}, func(d liveedit.Draft) (liveedit.Draft, error) {
		if f[0] == "unset" {
			return d.Unset(f[1], f[2])
		}
		return d.Set(f[0], f[1], f[2], f[3]), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// wantFits follows the settings, and checks that this count is the highest that is no
// error.
func (b *bench) wantFits(event string, count int) {
	b.t.Helper()
	if err := b.Live.Read(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	ask := func(count int) (fields, error) { return b.ask(fmt.Sprintf(`{%s,"count":%d}`, event, count)) }
	if got, err := ask(count); err != nil || got["allowed"] != true {
		b.t.Errorf("a count of %d: %v, %v, want it allowed", count, got, err)
	}
	if got, err := ask(count + 1); !errors.As(err, new(*input.ValidationError)) {
		b.t.Errorf("a count of %d: %v, %v, want a ValidationError", count+1, got, err)
	}
}

// What an older command or a person changes in the document alone ends a trial, and text
// that can't be read is no trial. The live limits are followed all the same.
func TestATrialEndsWithTheLimitThatIsTried(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*settings)
		fits   int
	}{
		"nothing":                {func(*settings) {}, 50},
		"an older command":       {func(s *settings) { s.Document = []byte(`{"activities":{"post":{"limit":"15/1m","mode":"shadow"}}}`) }, 15},
		"and back again":         {func(s *settings) { s.Document = []byte(`{"activities":{"post":{"limit":"20/60s","mode":"shadow"}}}`) }, 50},
		"an older command, mode": {func(s *settings) { s.Document = []byte(`{"activities":{"post":{"limit":"20/1m","mode":"enforce"}}}`) }, 20},
		"not JSON":               {func(s *settings) { s.Trials = []byte(`{`) }, 20},
		"of another kind":        {func(s *settings) { s.Trials = []byte(`{"post":{"":{"of":"20/1m","before":"log 50/1m"}}}`) }, 20},
		"of no limit":            {func(s *settings) { s.Trials = []byte(`{"post":{"":{"of":"20/1m","before":""}}}`) }, 20},
		"with more members":      {func(s *settings) { s.Trials = []byte(`{"post":{"":{"of":"20/1m","before":"50/1m","until":9}}}`) }, 50},
	} {
		t.Run(name, func(t *testing.T) {
			withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
				b.Guard = tried
				b.Live.Guards = limits.Guards{tried}
				s.edit(t, "post,,50/1m,")
				s.edit(t, "post,,20/1m,shadow")
				if tt.change(s); strings.Contains(string(s.Document), "50/1m") {
					t.Errorf("the document, which older code reads, is %s", s.Document)
				}
				s.Version++
				b.wantFits(`"activity":"post"`, tt.fits)
			})
		})
	}
}
