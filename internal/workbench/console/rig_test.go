package console_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	all "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A rig is a console in front of all guards, which count in memory.
type rig struct {
	t     *testing.T
	url   string
	page  *console.Console
	store *store
}

// A store can be down. It counts the reads.
type store struct {
	ratelimit.Store
	down  atomic.Bool
	reads atomic.Int64
}

var errDown = &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "access to the table is denied"}

func (s *store) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	s.reads.Add(1)
	if s.down.Load() {
		return ratelimit.Item{}, errDown
	}
	return s.Store.Read(ctx, k)
}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	if s.down.Load() {
		return ratelimit.Item{}, false, errDown
	}
	return s.Store.Update(ctx, w)
}

// noon is the time when the clock of a test begins. It is the start of a window
// of each limit but a day.
var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// start starts a rig. Its clock runs, and it begins some time after noon. Change
// may be nil.
func start(t *testing.T, after time.Duration, change func(*console.Console, *wiring.Settings)) *rig {
	t.Helper()
	began := time.Now()
	server := httptest.NewUnstartedServer(nil)
	r := &rig{t: t, store: &store{Store: new(memstore.Store)}}
	r.page = &console.Console{
		Guards: cricket.All, Address: server.Listener.Addr().String(), CountsIn: "memory",
		Clock: console.NewClock(func() time.Time { return noon.Add(after + time.Since(began)) }),
		Wait:  func(d time.Duration) string { return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second) },
	}
	settings := wiring.Settings{DecisionTimeout: time.Second, BypassRoles: []string{"admin"}}
	api := &invokeapi.Server{Functions: map[string]invokeapi.Function{}}
	if change != nil {
		change(r.page, &settings)
	}
	for _, g := range r.page.Guards {
		h := settings.Handler(g, r.store)
		h.Limiter.Now = r.page.Clock.Now
		api.Functions[g.Name] = invokeapi.Function{URL: true, Timeout: 10 * time.Second, Handler: r.page.Watch(g.Name, h, func(whose, activity string) (int64, int64) {
			a, _ := g.Activity(activity)
			subject, _, ok := all.SubjectOf(whose)
			if !ok {
				subject = ""
			}
			now := h.Limiter.Clock().UnixMilli()
			window, _ := a.Part(subject).Limit.Item(now)
			return h.Limiter.Memory.Recall(ratelimit.Key{UserID: whose, Activity: cmp.Or(a.Group, a.Name), Window: window}).Held(now)
		})}
	}
	r.page.API = api
	server.Config.Handler = r.page
	server.Start()
	t.Cleanup(func() {
		r.page.Close()
		server.Close()
	})
	r.url = server.URL
	return r
}

// startFor starts a rig of these guards at noon.
func startFor(t *testing.T, page ...guards.Guard) *rig {
	t.Helper()
	return start(t, 0, func(c *console.Console, _ *wiring.Settings) { c.Guards = cricket.Link(page...) })
}

// app sends an event as an app does.
func (r *rig) app(guard, event string) string {
	r.t.Helper()
	answer := r.send(http.MethodPost, "/2015-03-31/functions/"+guard+"/invocations", event)
	if answer.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %d %s", event, answer.StatusCode, answer.Text)
	}
	return answer.Text
}

// own sends what the page itself sends.
func (r *rig) own(path, body string) testkit.Response {
	r.t.Helper()
	return r.send(http.MethodPost, path, body, "Origin", r.url, "Content-Type", "application/json")
}

// get returns the page as served.
func (r *rig) get(path string) string {
	r.t.Helper()
	answer := r.send(http.MethodGet, path, "")
	if answer.StatusCode != http.StatusOK {
		r.t.Fatalf("GET %s: %d %s", path, answer.StatusCode, answer.Text)
	}
	return answer.Text
}

// send sends a request. Headers alternate between names and values; the header
// Host is the host of the request.
func (r *rig) send(method, path, body string, headers ...string) testkit.Response {
	r.t.Helper()
	return testkit.Send(r.t, method, r.url+path, body, headers...)
}
