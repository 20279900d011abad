package client_test

import (
	"errors"
	"maps"
	"reflect"
	"testing"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

type ids = map[string]string

// A request with other subjects than the list has is not sent, and its error shows none
// of its texts: each could be an id.
func TestWrongSubjectsAreNotSent(t *testing.T) {
	const needs, has = `: the activity "write" needs room, tenant (optional)`, `: the activity "write" has room, tenant (optional)`
	g, f := with(t, client.Options{}, body(okBody))
	for _, tt := range []struct {
		activity string
		subjects ids
		want     string
	}{
		{"write", nil, "subjects has no room" + needs},
		{"write", ids{"tenant": "t1"}, "subjects has no room" + needs},
		{"rooms-guard/write", ids{"rooom": "r1"}, "subjects has no room" + needs},
		{"write", ids{"room": "r1", "secret": "x"}, "subjects has an unknown name" + has},
		{"create_post", ids{"secret": "x"}, `subjects does not go with the activity "create_post": the list has none for it. Write the list again with guards generate if it is old.`},
	} {
		r := client.Request{UserID: "u1", Subjects: tt.subjects, At: 1, RequestID: "r1"}
		for op, verb := range verbs(g) {
			_, err := verb(t.Context(), tt.activity, r)
			if failure, ok := errors.AsType[*client.Error](err); !ok || !errors.Is(err, client.ErrValidation) || failure.Guard == "" || err.Error() != tt.want {
				t.Errorf("%s of %s with %v: %v, want %s", op, tt.activity, tt.subjects, err, tt.want)
			}
		}
	}
	if _, err := g.Reset(t.Context(), "write", client.Request{UserID: "u1", Subjects: ids{"x": "y"}}); !errors.Is(err, client.ErrValidation) {
		t.Errorf("a reset with an unknown subject: %v", err)
	}
	if len(f.events) != 0 {
		t.Errorf("%+v were sent", f.events)
	}
}

// What follows a check has its subjects, although the app may use its map again.
func TestSubjectsAreSent(t *testing.T) {
	for _, tt := range []struct {
		activity string
		subjects ids
	}{
		{"write", ids{"room": "r1"}},
		{"write", ids{"room": "r1", "tenant": "t1"}},
		{"photos-guard/write", ids{"album": "a1"}}, // the guard itself knows
		{"photos-guard/write", nil},
		{"create_post", nil},
		{"create_post", ids{}},
	} {
		g, f := with(t, client.Options{}, body(okBody))
		own := maps.Clone(tt.subjects)
		d := testkit.Must(g.Check(t.Context(), tt.activity, client.Request{UserID: "u1", Subjects: own}))(t)
		clear(own)
		testkit.Must(g.ReleaseDecision(t.Context(), d))(t)
		testkit.OK(t, g.Settle(t.Context(), d, 1))
		want := tt.subjects
		if len(want) == 0 {
			want = nil
		}
		if !reflect.DeepEqual(f.others, []map[string]string{want, want, want}) {
			t.Errorf("%s: a check, a release and a settlement have %v, want %v each", tt.activity, f.others, want)
		}
	}
}

func TestAResetAndReadyNeedNoSubjects(t *testing.T) {
	g, f := with(t, client.Options{}, body(okBody))
	if _, err := g.Reset(t.Context(), "write", u1); err != nil || f.others[0] != nil {
		t.Errorf("%v, with %v", err, f.others)
	}
	if err := g.Ready(t.Context(), "write"); err != nil || !reflect.DeepEqual(f.others[1], ids{"room": "ready"}) {
		t.Errorf("%v, with %v, want only the subject that is needed", err, f.others[1])
	}
}
