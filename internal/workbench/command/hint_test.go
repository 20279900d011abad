package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/live"
)

// An operator sees what is wrong in a document of live limits. Its error leaves
// that out, because functions log it.
func TestAdviceOnADocument(t *testing.T) {
	_, err := live.Parse([]byte(`{"unheard": {}}`))
	if err == nil || strings.Contains(err.Error(), "unheard") || !strings.Contains(adviceOn(err), "unheard") {
		t.Errorf("the error is %v, with the advice %q", err, adviceOn(err))
	}
}

func TestNearest(t *testing.T) {
	for misspelled, want := range map[string]string{
		"creat_post":           "create_post",
		"create_pots":          "create_post", // swapped
		"CREATE_POST":          "",
		"create-post":          "create_post",
		"create_message":       "",
		"create_room_mesage":   "create_room_message",
		"post":                 "",
		"likes":                "like",
		"vew":                  "view",
		"add_coment":           "add_comment",
		"add_coment\x00\xff":   "",
		"":                     "",
		"delete_room_messages": "delete_room_message",
	} {
		got, ok := nearest(misspelled, activityNames())
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v, want %q", misspelled, got, ok, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abxc", 1}, {"abc", "ac", 1}, {"abc", "axc", 1}, {"ca", "abc", 3}, {"post", "pots", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance of %q and %q is %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
