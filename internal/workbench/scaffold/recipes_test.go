package scaffold

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit"
)

// pages have recipes. In the order of a page, this is how often each app worked, and what it
// returned: for a new user, and for one who has used up all limits.
var pages = map[string]struct{ fresh, spent string }{
	"recipes.md": {
		"0 None, 0 None, 1 None, 1 None, 2 None, 0 None, 0 None, 0 None, 1 None, 2 None",
		"0 429, 0 429, 0 None, 0 LimitedError, 0 429, 0 None, 0 429, 0 429, 0 429, 0 429",
	},
	"sign-in.md": {
		"2 200, 1 200, 1 200, 1 200, 1 None, 1 200",
		"0 LimitedError, 0 LimitedError, 0 LimitedError, 0 200, 0 429, 0 LimitedError",
	},
}

// The commands of a page work in a copy of the repository. Then the guards give the answers
// that its tables show.
func TestTheRecipesWork(t *testing.T) {
	testkit.Projects.Need(t)
	for page, want := range pages {
		t.Run(page, func(t *testing.T) { tryRecipes(t, page, want.fresh, want.spent) })
	}
}

func tryRecipes(t *testing.T, page, fresh, spent string) {
	t.Helper()
	text := testkit.Must(os.ReadFile(root + "/docs/" + page))(t)
	recipes := strings.Split(string(text), "\n## ")[1:]
	dir := testkit.Copy(t)
	for _, recipe := range recipes {
		commands := 0
		for _, b := range blocks(recipe) {
			for line := range strings.Lines(b.text) {
				follow(t, dir, strings.TrimSpace(line))
				commands++
			}
		}
		if commands == 0 {
			t.Errorf("a recipe has no command:\n%s", recipe)
		}
	}
	follow(t, dir, "gofmt -l limits activities functions | (! grep .) && go test ./limits")
	list := testkit.Must(os.ReadFile(filepath.Join(dir, "activities", "activities.json")))(t)
	k := kitchen{page, serveIn(t, dir), decoded[map[string]activity](t, string(list)), map[float64]float64{}}
	for _, recipe := range recipes {
		events := 0
		for _, r := range row.FindAllStringSubmatch(recipe, -1) {
			if number := r[1]; number != "" {
				k.wait(t, number, r[2])
				continue
			}
			k.try(t, r[3], r[4], r[5])
			events++
		}
		if strings.Contains(recipe, "|\n\n|") {
			t.Errorf("a recipe has a table in two parts:\n%s", recipe)
		}
		if events < 3 || events != strings.Count(recipe, "\n| `") {
			t.Errorf("a recipe has %d events, want 3 or more, and each row of its table:\n%s", events, recipe)
		}
	}
	t.Run("apps", func(t *testing.T) { k.run(t, recipes, fresh, spent) })
}

// A kitchen tries the events of recipes.
type kitchen struct {
	page       string
	address    string              // of guards serve
	activities map[string]activity // the list that a client gets
	times      map[float64]float64 // a receipt of the page, and the real one
}

type activity struct {
	Guard    string   `json:"guard"`
	Subjects []string `json:"subjects,omitempty"`
}

var (
	row    = regexp.MustCompile("(?m)^\\| (\\d+) (minute|day)s? later \\| \\|$|^\\| `(\\{.*?\\})` \\| `(.*?)`(?:, no `(\\w+)`)? \\|$")
	python = regexp.MustCompile("(?s)\n```python\n(.*?)\n```")
)

// try sends an event and compares the fields of the answer that the page shows.
func (k kitchen) try(t *testing.T, event, fields, absent string) {
	t.Helper()
	sent, want := decoded[map[string]any](t, event), decoded[map[string]any](t, "{"+fields+"}")
	if at, ok := sent["at"].(float64); ok {
		sent["at"] = k.times[at]
	}
	got := k.ask(t, sent)
	if at, ok := want["at"].(float64); ok {
		k.times[at], _ = got["at"].(float64)
		if until, ok := want["heldUntil"].(float64); ok {
			want["heldUntil"] = until - at + k.times[at]
		}
		want["at"] = k.times[at]
	}
	shown := map[string]any{}
	for name := range want {
		shown[name] = got[name]
	}
	if diff := cmp.Diff(want, shown); diff != "" || got[absent] != nil {
		t.Errorf("%s (-docs/%s +answer; no %q):\n%s%v", event, k.page, absent, diff, got)
	}
}

// wait moves the guards' clock by a number of minutes or days.
func (k kitchen) wait(t *testing.T, number, unit string) {
	t.Helper()
	n := testkit.Must(strconv.Atoi(number))(t)
	ms := map[string]int{"minute": 60_000, "day": 24 * 60 * 60_000}[unit] * n
	post(t, k.address+"/console/clock", k.address, fmt.Sprintf(`{"move": %d}`, ms))
}

// ask sends an event to the guard of its activity.
func (k kitchen) ask(t *testing.T, event map[string]any) map[string]any {
	t.Helper()
	guard := k.activities[event["activity"].(string)].Guard
	body := testkit.Must(json.Marshal(event))(t)
	return decoded[map[string]any](t, post(t, k.address+"/"+guard, k.address, string(body)))
}

// run runs the app of each recipe for a new user, and then for one who has used up all
// limits. It compares how often an app worked, and what it returned.
func (k kitchen) run(t *testing.T, recipes []string, fresh, spent string) {
	t.Helper()
	apps := make([]string, len(recipes))
	for i, recipe := range recipes {
		app := python.FindStringSubmatch(recipe)
		if app == nil {
			t.Fatalf("a recipe has no app:\n%s", recipe)
		}
		apps[i] = app[1]
	}
	program := testkit.Package(t, "python", filepath.Join("venv", "bin", "python"))
	for _, tt := range []struct{ user, want string }{{"new", fresh}, {"spent", spent}} {
		if tt.user == "spent" {
			for name := range k.activities {
				if strings.Contains(strings.Join(apps, "\n"), `"`+name+`"`) {
					k.spend(t, tt.user, name)
				}
			}
		}
		kitchen := testkit.Must(json.Marshal(map[string]any{"user": tt.user, "apps": apps, "activities": k.activities}))(t)
		cmd := exec.CommandContext(t.Context(), program, filepath.Join("testdata", "recipes.py"))
		cmd.Stdin = bytes.NewReader(kitchen)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_LAMBDA="+k.address, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ", "); err != nil || got != tt.want {
			t.Errorf("the apps for a user %s: %v, %s, want %s", tt.user, err, got, tt.want)
		}
	}
	used := map[string]int{"chat_tokens": 1400, "export_notes": 0, "enter_pin": 0} // settled, freed, and given back
	for activity, want := range used {
		if k.activities[activity].Guard == "" {
			continue // of another page
		}
		got := k.ask(t, map[string]any{"userId": "new", "activity": activity, "op": "status"})
		if got["activityCount"] != float64(want) {
			t.Errorf("%s after the app: %v, want activityCount %d", activity, got, want)
		}
	}
}

// spend uses up the limit of a user. The user of some apps is an address, alone or with the
// account.
func (k kitchen) spend(t *testing.T, user, name string) {
	t.Helper()
	if other, ok := map[string]string{"sign_in": user + "@lobby", "sign_up": "lobby"}[name]; ok {
		user = other
	}
	event := map[string]any{"userId": user, "activity": name, "count": 1_000_000, "partial": true}
	subjects := map[string]string{}
	for _, subject := range k.activities[name].Subjects {
		subjects[subject] = "lobby"
	}
	if len(subjects) == 0 {
		k.ask(t, event)
		return
	}
	event = map[string]any{"userId": user, "activity": name, "subjects": subjects} // partial does not go with subjects
	for range 100 {
		if k.ask(t, event)["allowed"] != true {
			return
		}
	}
	t.Errorf("%s allows 100 at once", name)
}

// serveIn starts guards serve in a project and returns its address. Its clock is at the
// beginning of an hour, so no window ends while the test runs.
func serveIn(t *testing.T, dir string) (address string) {
	t.Helper()
	follow(t, dir, "go build -o serve-recipes ./cmd/guards")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "serve-recipes"), "serve", "--addr", "127.0.0.1:0")
	cmd.Dir = dir
	log := testkit.Must(cmd.StderrPipe())(t)
	testkit.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	for address == "" && lines.Scan() {
		if found := regexp.MustCompile(`serving .* on (http://[^,]+),`).FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	if address == "" {
		t.Fatal("guards serve did not start")
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	hour := time.Now().Add(time.Hour).Truncate(time.Hour)
	post(t, address+"/console/clock", address, fmt.Sprintf(`{"to": %d}`, hour.UnixMilli()))
	return address
}

// post sends JSON as a page of the address would, and returns the body of the answer.
func post(t *testing.T, url, origin, body string) string {
	t.Helper()
	return testkit.Send(t, "POST", url, body, "Content-Type", "application/json", "Origin", origin).Text
}

func decoded[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}
