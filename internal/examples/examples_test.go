// Package examples_test runs the apps of the folder examples against guards
// serve. make packages installs what they need.
package examples_test

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/lambdatest"
)

// An app starts one of the apps. Each does the same in another language.
type app func(t *testing.T, env ...string) *process

var apps = map[string]app{
	"express": byScript("express"),
	"fastapi": byScript("fastapi"),
	"go": func(t *testing.T, env ...string) *process {
		t.Helper()
		return start(t, env, lambdatest.Build(t, "./examples/go"))
	},
}

func byScript(args ...string) app {
	return func(t *testing.T, env ...string) *process {
		t.Helper()
		return start(t, append([]string{"GUARDS_PACKAGES=" + packages(t)}, env...), "scripts/example", args...)
	}
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
	forEachApp(t, func(t *testing.T, guards string, app app) {
		between := newProxy(t, guards)
		url := app(t, between.endpoint()).url(t)
		for name, test := range map[string]func(t *testing.T, user string){
			"an allowed post": func(t *testing.T, user string) {
				got := post(t, url, user)
				if got.status != http.StatusCreated || got.counted(t) != 1 {
					t.Errorf("%+v, want 201 and 1 counted", got)
				}
			},
			"a refused post": func(t *testing.T, user string) {
				ask(t, guards, user, `,"count":10`)
				checkRefusal(t, post(t, url, user))
			},
			"a lost answer": func(t *testing.T, user string) {
				before := between.requests.Load()
				between.set(lose)
				got := post(t, url, user)
				if counted := ask(t, guards, user, `,"op":"status"`); got.status != http.StatusCreated || counted != 1 {
					t.Errorf("%+v, and %d counted, want 201 and 1", got, counted)
				}
				if sent := between.requests.Load() - before; sent < 2 {
					t.Errorf("%d requests, want at least 2", sent)
				}
			},
		} {
			t.Run(name, func(t *testing.T) { inOneMinute(func() { test(t, rand.Text()) }) })
		}
		if got := post(t, url, ""); got.status != http.StatusUnauthorized {
			t.Errorf("without a user: %+v, want 401", got)
		}
	})
}

// inOneMinute calls try and repeats it until it runs within one minute of the
// clock, in which the guard counts.
func inOneMinute(try func()) {
	for {
		began := time.Now().Truncate(time.Minute)
		try()
		if time.Now().Truncate(time.Minute).Equal(began) {
			return
		}
	}
}

var left = regexp.MustCompile(`^"create_post";r=(\d+);t=\d+$`)

// counted returns how many of the ten posts are counted, by the headers.
func (a answer) counted(t *testing.T) int {
	t.Helper()
	found := left.FindStringSubmatch(a.header.Get("RateLimit"))
	if policy := a.header.Get("RateLimit-Policy"); found == nil || policy != `"create_post";q=10;w=60` {
		t.Fatalf("the headers are %v, want RateLimit and RateLimit-Policy", a.header)
	}
	n, _ := strconv.Atoi(found[1])
	return 10 - n
}

func checkRefusal(t *testing.T, got answer) {
	t.Helper()
	var problem struct {
		Status   int
		Type     string
		Message  string
		Allowed  *bool
		WaitTime float64
	}
	if err := json.Unmarshal([]byte(got.body), &problem); err != nil {
		t.Fatalf("%+v: %v", got, err)
	}
	after, _ := strconv.Atoi(got.header.Get("Retry-After"))
	switch {
	case got.status != http.StatusTooManyRequests || problem.Status != got.status || problem.Allowed == nil || *problem.Allowed,
		got.header.Get("Content-Type") != "application/problem+json" || !strings.HasSuffix(problem.Type, "#quota-exceeded"),
		problem.Message != "Rate limit exceeded: Too many requests in a short period",
		after < 1 || after > 60 || after != int((problem.WaitTime+999)/1000),
		got.counted(t) != 10:
		t.Errorf("%+v is not the refusal of an eleventh post", got)
	}
}

// An answer is what an app answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// post creates a post.
func post(t *testing.T, url, user string) answer {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url+"/posts", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		request.Header.Set("Authorization", "Bearer "+user)
	}
	return do(t, request)
}

func do(t *testing.T, request *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// What an app's author writes is short. Imports, the page and what stands for a
// log-in don't count.
func TestAppsAreShort(t *testing.T) {
	notCode := regexp.MustCompile(`^(//|#|import |from |""")|^$`)
	for _, name := range []string{"express/server.mjs", "fastapi/app.py", "delayed-job/with_queue.py", "delayed-job/without_queue.py"} {
		content, err := os.ReadFile(filepath.Join(root, "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(content)) {
			if !notCode.MatchString(strings.TrimSpace(line)) {
				lines++
			}
		}
		if lines > 25 {
			t.Errorf("%s has %d lines of code, want at most 25", name, lines)
		}
	}
}
