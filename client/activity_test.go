package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/client"
)

// activities is the list of the app in these tests, in the form of guards
// generate.
var activities = []client.Activity{
	{Name: "create_post", Guard: "posts-guard", Window: time.Minute},
	{Name: "like", Guard: "posts-guard"},
	{Name: "pin", Guard: "pins-guard", Window: 12 * time.Hour},
	{Name: "send_message", Guard: "chat-guard", Window: 5 * time.Second},
	{Name: "ingest", Guard: "ingest-guard", Window: time.Hour},
	{Name: "update_member_role", Guard: "jobs-guard", Window: 10 * time.Second},
	{Name: "write", Guard: "rooms-guard", Subjects: []string{"room", "tenant?"}},
}

// withoutList returns a client that knows no activity.
func withoutList(t *testing.T, replies ...reply) (*client.Guards, *function) {
	t.Helper()
	f := &function{replies: replies}
	return open(t, client.Options{Client: f, Prefix: "dev-"}), f
}

func TestFind(t *testing.T) {
	listed, _ := with(t, client.Options{}, body(okBody))
	unlisted, _ := withoutList(t, body(okBody))
	posts := client.Activity{Name: "create_post", Guard: "posts-guard", Window: time.Minute}
	for _, tt := range []struct {
		name   string
		guards *client.Guards
		want   client.Activity // with a window only if it is in the list
		ok     bool
	}{
		{"create_post", listed, posts, true},
		{"posts-guard/create_post", listed, posts, true},
		{"photos-guard/create_post", listed, client.Activity{Name: "create_post", Guard: "photos-guard"}, true},
		{"upload_photo", listed, client.Activity{Name: "upload_photo"}, false},
		{"create_post", unlisted, client.Activity{Name: "create_post"}, false},
		{"posts-guard/create_post", unlisted, client.Activity{Name: "create_post", Guard: "posts-guard"}, true},
	} {
		if got, ok := tt.guards.Find(tt.name); ok != tt.ok || ok && !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestAnUnknownActivityIsNotSent(t *testing.T) {
	const (
		pass  = `: pass the list that guards generate writes (activities/activities.go) as the option Activities, or name the guard: "GUARD/ACTIVITY"`
		renew = `: write the list again with guards generate, or name the guard: "GUARD/ACTIVITY"`
		near  = "; do you mean create_post?"
	)
	listed, asked := with(t, client.Options{}, body(okBody))
	unlisted, alsoAsked := withoutList(t, body(okBody))
	for _, tt := range []struct {
		guards         *client.Guards
		activity, want string
	}{
		{listed, "create_pots", near},
		{listed, "upload_photo", renew},
		{listed, "", renew},
		{listed, "photos-guard/", renew},
		{listed, "/upload_photo", renew},
		{unlisted, "create_post", pass},
		{unlisted, "", pass},
		{unlisted, "/upload_photo", pass},
	} {
		_, err := tt.guards.Check(t.Context(), tt.activity, u1)
		want := `no guard is known for the activity "` + tt.activity + `"` + tt.want
		if !errors.Is(err, client.ErrValidation) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if again := tt.guards.Ready(t.Context(), tt.activity); !errors.Is(again, client.ErrValidation) || again.Error() != want {
			t.Errorf("%v, want %s", again, want)
		}
	}
	if len(asked.events)+len(alsoAsked.events) != 0 {
		t.Errorf("%+v and %+v were sent", asked.events, alsoAsked.events)
	}
}

func TestReadyWithoutNamesNeedsAList(t *testing.T) {
	g, f := withoutList(t, body(okBody))
	const want = `no guard is known: pass the list that guards generate writes (activities/activities.go) as the option Activities, or name the guard: "GUARD/ACTIVITY"`
	if err := g.Ready(t.Context()); !errors.Is(err, client.ErrConfiguration) || err.Error() != want || len(f.events) != 0 {
		t.Errorf("%v after %d requests, want %s", err, len(f.events), want)
	}
	if err := g.Ready(t.Context(), "posts-guard/create_post"); err != nil || len(f.events) != 1 {
		t.Errorf("%v after %d requests, want one", err, len(f.events))
	}
}

func TestAWrongListIsAnError(t *testing.T) {
	for want, list := range map[string][]client.Activity{
		`Activities[0] is {Name:create_post Guard: Window:1m0s Subjects:[] Hold:false}, want`:    {{Name: "create_post", Window: time.Minute}},
		`Activities[1] is {Name: Guard:posts-guard Window:0s Subjects:[] Hold:false}, want`:      {{Name: "like", Guard: "posts-guard"}, {Guard: "posts-guard"}},
		`Activities[0] is {Name:posts-guard/like Guard:posts-guard Window:0s Subje`:              {{Name: "posts-guard/like", Guard: "posts-guard"}},
		`Activities[0] is {Name:like Guard:posts/guard Window:0s Subjects:[] Hold:false}, want`:  {{Name: "like", Guard: "posts/guard"}},
		`Activities[0] is {Name:like Guard:posts-guard Window:-1s Subjects:[] Hold:false}, want`: {{Name: "like", Guard: "posts-guard", Window: -time.Second}},
		`Activities has a subject of "view" without a name`:                                      {{Name: "view", Guard: "posts-guard", Subjects: []string{"room", "?"}}},
		`Activities has "like" twice, for posts-guard and for photos-guard`:                      {{Name: "like", Guard: "posts-guard"}, {Name: "like", Guard: "photos-guard"}},
	} {
		_, err := client.New(t.Context(), client.Options{Client: fake(nil), Activities: list})
		if !errors.Is(err, client.ErrConfiguration) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", list, err, want)
		}
	}
}

func TestWithoutAListAURLMayBeOfAnyGuard(t *testing.T) {
	for address, want := range map[string]error{"https://x.lambda-url.eu-west-1.on.aws/": nil, "photos": client.ErrConfiguration} {
		_, err := client.New(t.Context(), client.Options{
			Client: lambda.New(lambda.Options{Region: urlRegion}),
			URLs:   map[string]string{"photos-guard": address},
		})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
}
