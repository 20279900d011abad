package table_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	. "github.com/cric-talk/guards/internal/table"
)

func TestMemory(t *testing.T) {
	store := new(memstore.Store)
	put := func(user string, window, expires int64) {
		t.Helper()
		w := ratelimit.Write{Key: ratelimit.Key{UserID: user, Activity: "act", Window: window}, ID: ratelimit.NewID("r"), Expires: expires}
		if _, done, err := store.Update(t.Context(), w); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	put("gone", 1, now-1)
	put("gone", 2, now)
	put("here", 1, now)
	put(" room here", 1, now-1)
	put(" room here", 2, now)
	put(" room other", 1, now)
	put(" tenant here", 1, now)
	m := Memory{Store: store}
	for _, step := range []struct {
		erase string // the user; empty: a sweep
		o     Sweep
		want  Swept
	}{
		{"", Sweep{Now: now, DryRun: true}, Swept{Scanned: 7, Stale: 2, Users: 2, Subjects: Subjects{"room": 2, "tenant": 1}, Finished: true}},
		{"", Sweep{Now: now}, Swept{Scanned: 7, Stale: 2, Deleted: 2, Users: 2, Subjects: Subjects{"room": 2, "tenant": 1}, Finished: true}},
		{" room here", Sweep{}, Swept{Scanned: 1, Stale: 1, Deleted: 1, Subjects: Subjects{"room": 1}, Finished: true}},
		{" room here", Sweep{}, Swept{Finished: true}},
		{"here", Sweep{DryRun: true}, Swept{Scanned: 1, Stale: 1, Users: 1, Finished: true}},
		{"here", Sweep{}, Swept{Scanned: 1, Stale: 1, Deleted: 1, Users: 1, Finished: true}},
		{"", Sweep{Now: now}, Swept{Scanned: 3, Users: 1, Subjects: Subjects{"room": 1, "tenant": 1}, Finished: true}},
	} {
		run := func() (Swept, error) { return m.Sweep(t.Context(), step.o) }
		if step.erase != "" {
			run = func() (Swept, error) { return m.Erase(t.Context(), step.erase, step.o) }
		}
		got, err := run()
		if err != nil || !cmp.Equal(got, step.want) {
			t.Errorf("%+v: %+v, %v, want %+v", step, got, err, step.want)
		}
	}
}
