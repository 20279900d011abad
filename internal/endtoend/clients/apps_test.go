package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// An app starts one of the apps. Each does the same in another language.
type app func(t testing.TB, env ...string) *process

var apps = map[string]app{
	"express": example("express"),
	"fastapi": example("fastapi"),
	"go": func(t testing.TB, env ...string) *process {
		t.Helper()
		return run(t, env, lambdatest.Build(t, "./examples/go"))
	},
}

func example(args ...string) app {
	return func(t testing.TB, env ...string) *process {
		t.Helper()
		return run(t, append([]string{"GUARDS_PACKAGES=" + filepath.Dir(testkit.Package(t, "examples", ""))}, env...), "scripts/example", args...)
	}
}

// serving starts the app and returns its URL. It starts the app again if the
// machine was so busy that ready took it for an outage.
func (a app) serving(t testing.TB, env ...string) (*process, string) {
	t.Helper()
	for range 4 {
		p := a(t, env...)
		if url := p.url(t); url != "" {
			return p, url
		} else if !p.tookForAnOutage() {
			break
		}
	}
	t.Fatal("the app printed no URL")
	return nil, ""
}

func forEachApp(t *testing.T, test func(t *testing.T, guards string, app app)) {
	t.Helper()
	guards := serve(t)
	for name, app := range apps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, guards, app)
		})
	}
}

func TestAppsLimitPosts(t *testing.T) {
	testkit.Clients.Need(t)
	forEachApp(t, func(t *testing.T, guards string, app app) {
		between := newProxy(t, guards)
		running, url := app.serving(t, between.endpoint())
		for name, try := range map[string]func(t testing.TB, user string){
			"an allowed post": func(t testing.TB, user string) {
				t.Helper()
				counts(t, post(t, url, user), http.StatusCreated, 1)
			},
			"a refused post": func(t testing.TB, user string) {
				t.Helper()
				askPosts(t, guards, user, `,"count":10`)
				refuses(t, post(t, url, user))
			},
			"a lost answer": func(t testing.TB, user string) {
				t.Helper()
				between.set(losesAnAnswer)
				counts(t, post(t, url, user), http.StatusCreated, 1)
				if sent, counted := between.requests.Load(), askPosts(t, guards, user, `,"op":"status"`); sent < 2 || counted != 1 {
					t.Errorf("%d requests and %d counted, want at least 2 and 1", sent, counted)
				}
			},
		} {
			t.Run(name, func(t *testing.T) { running.retry(t, try) })
		}
		if got := post(t, url, ""); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a user: %+v, want 401", got)
		}
	})
}

// retry calls try with a new user until it passes. The guard counts in minutes of
// the clock, and a minute can end meanwhile. A busy machine can look like an
// outage.
func (p *process) retry(t *testing.T, try func(t testing.TB, user string)) {
	t.Helper()
	testkit.Retry(t, func(t testing.TB) {
		try(t, rand.Text())
		if t.Failed() && p.tookForAnOutage() {
			time.Sleep(time.Second) // the app asks again only after a second
		}
	})
}

var left = regexp.MustCompile(`^"create_post";r=(\d+);t=\d+$`)

// counts checks an answer's status, and how many of the ten posts are counted by
// its headers.
func counts(t testing.TB, got testkit.Response, status int, counted int) {
	t.Helper()
	found := left.FindStringSubmatch(got.Header.Get("RateLimit"))
	if found == nil || got.Header.Get("RateLimit-Policy") != `"create_post";q=10;w=60` || got.StatusCode != status || found[1] != strconv.Itoa(10-counted) {
		t.Errorf("%+v, want %d, and %d counted in RateLimit and RateLimit-Policy", got, status, counted)
	}
}

// refuses checks the answer to an eleventh post.
func refuses(t testing.TB, got testkit.Response) {
	t.Helper()
	var problem struct {
		Status        int
		Type, Message string
		Allowed       *bool
		WaitTime      float64
	}
	err := json.Unmarshal([]byte(got.Text), &problem)
	after, _ := strconv.Atoi(got.Header.Get("Retry-After"))
	switch {
	case err != nil, problem.Status != http.StatusTooManyRequests || problem.Allowed == nil || *problem.Allowed,
		got.Header.Get("Content-Type") != "application/problem+json" || !strings.HasSuffix(problem.Type, "#quota-exceeded"),
		problem.Message != "Rate limit exceeded: Too many requests in a short period",
		after < 1 || after > 60 || after != int((problem.WaitTime+999)/1000):
		t.Errorf("%+v is not the refusal of an eleventh post: %v", got, err)
	}
	counts(t, got, http.StatusTooManyRequests, 10)
}

// post creates a post.
func post(t testing.TB, url, user string) testkit.Response {
	t.Helper()
	var headers []string
	if user != "" {
		headers = []string{"Authorization", "Bearer " + user}
	}
	return testkit.Send(t, http.MethodPost, url+"/posts", "", headers...)
}

// What an app's author writes is short. Imports, the page and what stands for a
// log-in don't count.
func TestAppsAreShort(t *testing.T) {
	notCode := regexp.MustCompile(`^(//|#|import |from |""")|^$`)
	for _, name := range []string{"express/server.mjs", "fastapi/app.py", "delayed-job/with_queue.py", "delayed-job/without_queue.py"} {
		lines := 0
		for line := range strings.Lines(text(t, "examples", name)) {
			if !notCode.MatchString(strings.TrimSpace(line)) {
				lines++
			}
		}
		if lines > 25 {
			t.Errorf("%s has %d lines of code, want at most 25", name, lines)
		}
	}
}

func TestInAnOutageTheAppDoesWhatItChose(t *testing.T) {
	testkit.Clients.Need(t)
	for onOutage, want := range map[string]int{"allow": http.StatusCreated, "deny": http.StatusServiceUnavailable} {
		t.Run(onOutage, func(t *testing.T) {
			forEachApp(t, func(t *testing.T, guards string, app app) {
				between := newProxy(t, guards)
				_, url := app.serving(t, between.endpoint(), "GUARDS_ON_OUTAGE="+onOutage)
				between.set(breaks)
				got := post(t, url, rand.Text())
				if got.StatusCode != want {
					t.Errorf("%+v, want %d", got, want)
				}
				if want == http.StatusServiceUnavailable && (got.Header.Get("Retry-After") != "1" ||
					got.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.Text, `"Unavailable"`)) {
					t.Errorf("%+v is not the problem of an outage", got)
				}
			})
		})
	}
}

func TestAMistakeLetsNobodyPost(t *testing.T) {
	testkit.Clients.Need(t)
	forEachApp(t, func(t *testing.T, guards string, app app) {
		for name, mistake := range map[string]struct {
			fault            fault
			setting, message string
		}{
			"no permission":   {denied, "GUARDS_ON_OUTAGE=allow", "The app may not invoke posts-guard in us-east-1."},
			"a wrong name":    {knowsAnotherName, "GUARDS_ON_OUTAGE=allow", "There is no function posts-guard in us-east-1."},
			"a wrong setting": {breaks, "GUARDS_ON_OUTAGE=perhaps", "perhaps"},
		} {
			t.Run(name, func(t *testing.T) {
				testkit.Retry(t, func(t testing.TB) { // a busy machine can look like an outage
					started := app(t, mistake.setting, "AWS_ENDPOINT_URL_LAMBDA="+mistake.fault.between(t, guards))
					if status := started.status(t); status == 0 || !strings.Contains(started.String(), mistake.message) {
						t.Errorf("exit status %d, want an error that contains %q and no start", status, mistake.message)
					}
				})
			})
		}
		t.Run("a permission that was taken away later", func(t *testing.T) {
			between := newProxy(t, guards)
			running, url := app.serving(t, between.endpoint())
			between.set(denied)
			running.retry(t, func(t testing.TB, user string) {
				t.Helper()
				if got := post(t, url, user); got.StatusCode != http.StatusInternalServerError {
					t.Errorf("%+v, want 500", got)
				}
			})
		})
	})
}
