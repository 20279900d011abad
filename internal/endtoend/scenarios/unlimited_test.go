package scenarios_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// While a slot of 12 s is open, an operator switches its limit off, or grants the user a
// role that is never limited, and takes that back some seconds later. The slot is renewed
// and released afterwards.
func TestASlotWhileNobodyIsLimited(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	w := openWard(t)
	testkit.Retry(t, func(t testing.TB) { // a busy machine can lose the slot
		w.begin(t)
		var wg sync.WaitGroup
		results := make([][]result, len(w.drivers))
		for i, d := range w.drivers {
			wg.Go(func() {
				r, err := d.ask(map[string]any{"together": []map[string]any{w.slot("export", w.users[i]), w.slot("render", w.users[i])}})
				if results[i] = r.Results; err != nil {
					t.Error(err)
				}
			})
		}
		w.await("check", 2*len(w.drivers))
		grants := liveedit.Draft{}.Set("export", "", "", "off")
		for _, user := range w.users {
			grants = grants.Grant(live.Grant{UserID: user, Role: "admin", Until: time.Now().Add(time.Hour), Reason: "test"}, time.Now())
		}
		w.change(t, grants)
		w.turnTo(t, "unlimited", "unlimited", "bypassed")
		w.await("renew", w.asked("renew")+2*len(w.drivers))
		w.change(t, liveedit.Draft{})
		w.turnTo(t, "limited", "ok", "ok")
		wg.Wait()
		for i, user := range w.users {
			for n, activity := range []string{"export", "render"} {
				if len(results[i]) != 2 || results[i][n].Answer["lost"] != false {
					t.Errorf("%s by %s: %+v", activity, w.names[i], results[i])
				}
				want := `^first:check( first:renew)*( unlimited:renew)+( limited:renew)+ limited:release$`
				if ops := w.ops(user, activity); !regexp.MustCompile(want).MatchString(ops) {
					t.Errorf("%s by %s: the requests are %q, want %s", activity, w.names[i], ops, want)
				}
				if left := w.ask(t, "limited", user, activity); left.ActivityCount != 0 {
					t.Errorf("%s by %s: %d slots are used after the release", activity, w.names[i], left.ActivityCount)
				}
			}
		}
	})
}

// A ward is forum-guard with three instances, which serve one after the other: a new
// instance knows the settings from its second decision on. All clients hold slots there.
type ward struct {
	cloud   *cloud
	table   *dynamoedit.Table
	drivers []*driver
	names   []string // of their clients
	users   []string // of the drivers

	mu       sync.Mutex
	serves   string // the instance
	requests []visit
}

// A visit is a request at an instance.
type visit struct {
	request
	by string
}

func openWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{cloud: &cloud{table: dynamotest.Table(t), functions: map[string]*lambdatest.Instance{}}}
	w.table = dynamoedit.New(dynamotest.Client(t, dynamotest.Endpoint(t)), w.cloud.table)
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	for _, c := range append([]client{asyncPython}, clients...) {
		w.drivers, w.names = append(w.drivers, c.start(t, server.URL, nil)), append(w.names, c.name)
	}
	return w
}

// begin starts new instances, for new users.
func (w *ward) begin(t testing.TB) {
	t.Helper()
	w.change(t, liveedit.Draft{})
	for _, name := range []string{"first", "unlimited", "limited"} {
		w.cloud.functions[name] = lambdatest.Start(t, lambdatest.Build(t, forum),
			"AWS_ENDPOINT_URL_DYNAMODB="+dynamotest.Endpoint(t), "DECISION_TIMEOUT=5s", "TABLE_NAME="+w.cloud.table, "BYPASS_ROLES=admin")
	}
	w.serves, w.requests, w.users = "first", nil, nil
	for _, d := range w.drivers {
		testkit.Must(d.ask(map[string]any{"new": patient}))(t)
		w.users = append(w.users, "user-"+rand.Text())
	}
}

func (w *ward) serve(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	var q request
	_ = json.Unmarshal(body, &q)
	w.mu.Lock()
	r.SetPathValue("name", w.serves)
	w.requests = append(w.requests, visit{q, w.serves})
	w.mu.Unlock()
	w.cloud.invoke(rw, r, body)
}

// slot returns a command that holds a slot for 14 s.
func (w *ward) slot(activity, user string) map[string]any {
	return map[string]any{
		"call": "slot", "work": 14_000, "activity": map[string]any{"guard": "forum-guard", "activity": activity},
		"args": map[string]any{"userId": user},
	}
}

// change writes the settings, as an operator does.
func (w *ward) change(t testing.TB, d liveedit.Draft) {
	t.Helper()
	known := limits.Guards{{Name: "forum-guard", Message: "m", Activities: []limits.Activity{{Name: "export", Limit: policy.Must("log 3/12s")}}}}
	testkit.OK(t, liveedit.Edit(t.Context(), w.table, known, liveedit.Change{At: time.Now(), By: "test", Why: "test"},
		func(liveedit.Draft) (liveedit.Draft, error) { return d, nil }))
}

// turnTo lets another instance serve, once it knows the settings: it answers with these
// reasons to a status of export and of render.
func (w *ward) turnTo(t testing.TB, name, export, render string) {
	t.Helper()
	for w.ask(t, name, w.users[0], "export").Reason != export || w.ask(t, name, w.users[0], "render").Reason != render {
		time.Sleep(20 * time.Millisecond)
	}
	w.mu.Lock()
	w.serves = name
	w.mu.Unlock()
}

// ask asks an instance for a status.
func (w *ward) ask(t testing.TB, name, user, activity string) (a struct {
	Reason        string
	ActivityCount int64
},
) {
	t.Helper()
	r := w.cloud.functions[name].Invoke(t, fmt.Sprintf(`{"userId":%q,"activity":%q,"op":"status"}`, user, activity))
	if err := json.Unmarshal(r.Payload, &a); err != nil || r.ErrorType != "" {
		t.Fatalf("%s, %v", r.Payload, err)
	}
	return a
}

// await waits until n requests with an op have arrived, at most 10 s.
func (w *ward) await(op string, n int) {
	for end := time.Now().Add(10 * time.Second); w.asked(op) < n && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// asked returns how many requests with an op arrived.
func (w *ward) asked(op string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.requests {
		if v.Op == op {
			n++
		}
	}
	return n
}

// ops returns a user's requests about an activity, each with its instance.
func (w *ward) ops(user, activity string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ops []string
	for _, v := range w.requests {
		if v.UserID == user && v.Activity == activity {
			ops = append(ops, v.by+":"+v.Op)
		}
	}
	return strings.Join(ops, " ")
}
