package scenarios_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// A gate is Lambda with one guard, which lets ten requests of each user through. Users
// have a kind, such as "silent-1":
//
//	silent  get no answer
//	others  get it after takes
type gate struct {
	url   string
	takes time.Duration
	asked chan bool // gets a value for each request; nil: none
	guard guard.Handler
}

func openGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{guard: guard.Handler{
		Guard:   limits.Guard{Name: "posts-guard", Message: tooMany, Activities: []limits.Activity{{Name: "create_post", Limit: policy.Must("10/1d")}}},
		Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}, Log: slog.New(slog.DiscardHandler),
	}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q request
	if err != nil || json.Unmarshal(body, &q) != nil {
		return
	}
	if strings.HasPrefix(q.UserID, "silent-") {
		hang(w, r, nil)
	}
	answer, err := g.guard.Invoke(context.WithoutCancel(r.Context()), body)
	if err != nil {
		panic(err)
	}
	if g.asked != nil {
		select {
		case g.asked <- true:
		case <-r.Context().Done():
		}
	}
	select {
	case <-time.After(g.takes):
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if byURL := !strings.HasSuffix(r.URL.Path, "/invocations"); byURL && bytes.Contains(answer, []byte(`"reason":"limited"`)) {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(answer)
}

// checkBy returns a command that checks for a new user of a kind.
func checkBy(kind string) map[string]any {
	return map[string]any{"call": "check", "activity": "create_post", "args": map[string]any{"userId": kind + "-" + rand.Text()}}
}

// checks returns a command that makes the same check n times at once.
func checks(n int, kind string) map[string]any {
	one := checkBy(kind)
	all := make([]map[string]any, n)
	for i := range all {
		all[i] = one
	}
	return map[string]any{"together": all}
}

// A tally is what many checks come to.
type tally struct {
	allowed, refused int           // by the guard
	outages          int           // decided by onOutage
	errors           string        // the first one
	longest          time.Duration // the slowest check
}

func tallyOf(results []result) (t tally) {
	for _, r := range results {
		t.longest = max(t.longest, time.Duration(r.Ms)*time.Millisecond)
		switch {
		case r.Error != nil:
			t.errors = r.Error.Class + ": " + r.Error.Message
		case r.Answer["outage"] != nil:
			t.outages++
		case r.Answer["allowed"] == true:
			t.allowed++
		default:
			t.refused++
		}
	}
	return t
}

// everyClient runs a test with each client, at the same time.
func everyClient(t *testing.T, test func(t *testing.T, c client)) {
	t.Helper()
	for _, c := range append(slices.Clip(clients), asyncPython) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// A user who sends 800 requests at once gets no more through than the limit,
// although most of the checks wait for longer than 3 s for a connection.
func TestABurstIsNoOutage(t *testing.T) {
	testkit.Clients.Need(t)
	everyClient(t, func(t *testing.T, c client) {
		for name, tt := range map[string]struct {
			takes time.Duration
			url   bool
		}{
			"slow":   {time.Second, false},
			"by URL": {500 * time.Millisecond, true},
		} {
			t.Run(name, func(t *testing.T) {
				g := openGate(t)
				g.takes = tt.takes
				options := map[string]any{}
				if tt.url {
					options["urls"] = map[string]string{"posts-guard": g.url}
				}
				d := c.start(t, g.url, nil)
				d.do(t, map[string]any{"new": options})
				got := tallyOf(d.do(t, checks(800, "user")).Results)
				got.longest = 0
				if want := (tally{allowed: 10, refused: 790}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	})
}

// A guard that does not answer costs each caller at most 6 s, also in a burst of
// more calls than the client has connections. After that, one call in each second
// asks the guard, and the others cost nothing.
func TestAGuardThatIsGone(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	everyClient(t, func(t *testing.T, c client) {
		for name, at := range map[string]func(*testing.T) string{
			"no answer":     func(t *testing.T) string { return openGate(t).url },
			"no connection": deafAddress,
		} {
			t.Run(name, func(t *testing.T) {
				d := c.start(t, at(t), nil)
				testkit.Retry(t, func(tb testing.TB) {
					tb.Helper()
					own := busy(t, c)
					most := 6*time.Second + 3*own
					d.do(t, map[string]any{"new": map[string]any{}})
					got := tallyOf(d.do(t, checks(500, "silent")).Results)
					if got.outages != 500 || got.longest > most {
						tb.Errorf("%+v, want 500 outages within 6 s and the machine's own time, %s in all", got, most)
					}
					waited := 0
					next := d.do(t, checks(20, "silent")).Results
					for _, r := range next {
						if time.Duration(r.Ms)*time.Millisecond > 500*time.Millisecond+own {
							waited++
						}
					}
					if all := tallyOf(next); all.outages != 20 || waited > 1 {
						tb.Errorf("the next 20 checks: %+v, and %d wait, want outages, and at most one that waits", all, waited)
					}
				})
			})
		}
	})
}

// busy returns how long the same burst takes this machine now if the guard answers
// at once. That is the app's own time. A call that is given up costs more of it:
// two attempts, their timers, and the breaker.
func busy(t *testing.T, c client) time.Duration {
	t.Helper()
	g := openGate(t)
	g.takes = time.Millisecond
	d := c.start(t, g.url, nil)
	d.do(t, map[string]any{"new": map[string]any{}})
	return tallyOf(d.do(t, checks(500, "busy")).Results).longest
}

// deafAddress returns a URL that neither accepts nor refuses a connection: the
// queue of its listener is full.
func deafAddress(t *testing.T) string {
	t.Helper()
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) })
	}
	if err != nil {
		t.Fatal(err)
	}
	for full := false; !full; { // the first one or two are connected, and stay in the queue
		filler, err := net.DialTimeout("tcp", listener.Addr().String(), 100*time.Millisecond)
		if full = err != nil; !full {
			t.Cleanup(func() { _ = filler.Close() })
		}
	}
	return "http://" + listener.Addr().String()
}

// once makes one attempt of up to 1.5 s for each call.
var once = map[string]any{"timeout": 1_500, "decisionTimeout": 1_000, "maxTries": 1}

// The client's process stands still while the answer arrives, until long after
// the call's timeout.
func TestAProcessThatWasLateReadsItsAnswer(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	everyClient(t, func(t *testing.T, c client) {
		g := openGate(t)
		g.asked, g.takes = make(chan bool), 100*time.Millisecond
		d := c.start(t, g.url, nil)
		testkit.Retry(t, func(tb testing.TB) {
			tb.Helper()
			d.do(t, map[string]any{"new": once})
			ended, stopped := make(chan bool), make(chan error, 1)
			go func() {
				select {
				case <-g.asked:
				case <-ended:
					stopped <- errors.New("no request arrived")
					return
				}
				err := d.process.Signal(syscall.SIGSTOP)
				time.Sleep(3 * time.Second) // no clock of ours can stop a process
				stopped <- errors.Join(err, d.process.Signal(syscall.SIGCONT))
			}()
			r := d.do(t, checkBy("user"))
			close(ended)
			if err := <-stopped; err != nil || tallyOf([]result{r}).allowed != 1 {
				tb.Errorf("%+v, want an answer: %v", r, err)
			}
		})
	})
}
