package scenarios_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	appclient "github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limiter"
)

// signIn has a lockout of five failures.
var signIn = []guards.Guard{{Name: "doors-guard", Message: tooMany, Activities: []guards.Activity{{Name: "sign_in", Limit: "lockout 5/15m for 1h"}}}}

// A guesser is a process of an app in Go that decides itself and tries to sign in.
type guesser struct {
	Endpoint, Table, Account string

	Guesses int  // at the same moment
	Right   bool // each guess is right
	Dies    bool // in the middle of the first guess
}

// guessing is a variable with a guesser as JSON.
const guessing = "GUARDS_TEST_GUESSES"

// guessed is what a guesser did.
type guessed struct{ Verified, Refused, In, Mails int64 }

// signedIn returns the client of an instance of the app.
func signedIn(ctx context.Context, endpoint, table string) (*appclient.Guards, error) {
	cfg := dynamotest.Config(endpoint)
	l, err := limiter.New(ctx, signIn, limiter.Options{
		Table: table, Config: &cfg, OnOutage: "deny", Metrics: "off", Output: io.Discard, Log: slog.New(slog.DiscardHandler),
		DecisionTimeout: 5 * time.Second, // so that a slow test machine causes no outage
	})
	if err != nil {
		return nil, err
	}
	return appclient.New(ctx, appclient.Options{Local: l})
}

// guess is the process. It begins when it reads a line, and then writes what it did.
func (g guesser) guess(t *testing.T) {
	t.Helper()
	app := testkit.Must(signedIn(t.Context(), g.Endpoint, g.Table))(t)
	fmt.Println("ready")
	testkit.Must(bufio.NewReader(os.Stdin).ReadString('\n'))(t)
	var verified, refused, in, mails atomic.Int64
	r := appclient.Request{UserID: g.Account, OnLocked: func(appclient.Decision) { mails.Add(1) }}
	var wg sync.WaitGroup
	for range g.Guesses {
		wg.Go(func() {
			ok, err := app.Attempt(t.Context(), "sign_in", r, func(context.Context, appclient.Decision) (bool, error) {
				verified.Add(1)
				if g.Dies {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
				time.Sleep(100 * time.Millisecond) // others guess meanwhile
				return g.Right, nil
			})
			switch {
			case errors.Is(err, appclient.ErrLimited) && !errors.Is(err, appclient.ErrOutage):
				refused.Add(1)
			case err != nil:
				t.Error(err)
			case ok:
				in.Add(1)
			}
		})
	}
	wg.Wait()
	testkit.NoError(t, json.NewEncoder(os.Stdout).Encode(guessed{verified.Load(), refused.Load(), in.Load(), mails.Load()}))
}

// start starts the process of a guesser. The function that it returns lets it begin, and
// returns what it did; nothing if it died.
func (g guesser) start(t *testing.T) (begin func() guessed) {
	t.Helper()
	text := testkit.Must(json.Marshal(g))(t)
	app := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	app.Env = append(os.Environ(), guessing+"="+string(text))
	in, err1 := app.StdinPipe()
	out, err2 := app.StdoutPipe()
	testkit.OK(t, errors.Join(err1, err2, app.Start()))
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the guesser says %q", lines.Text())
	}
	return func() (did guessed) {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			t.Error(err)
		}
		var rest strings.Builder
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "{") {
				testkit.NoError(t, json.Unmarshal(lines.Bytes(), &did))
			}
			rest.WriteString(lines.Text() + "\n")
		}
		if err := app.Wait(); (err != nil) != g.Dies {
			t.Errorf("the guesser ends with %v:\n%s", err, &rest)
		}
		return did
	}
}

// isGuesser reports whether this process is a guesser, after its guesses.
func isGuesser(t *testing.T) bool {
	t.Helper()
	text := os.Getenv(guessing)
	if text == "" {
		return false
	}
	var g guesser
	testkit.OK(t, json.Unmarshal([]byte(text), &g))
	g.guess(t)
	return true
}

// Ten processes guess 200 passwords of one account at the same moment. Exactly five are tried,
// and the owner gets one mail.
func TestParallelGuessesGetTheLimitOfTries(t *testing.T) {
	testkit.Clients.Need(t)
	if isGuesser(t) {
		return
	}
	t.Parallel()
	g := guesser{Endpoint: dynamotest.Endpoint(t), Table: dynamotest.Table(t), Account: "a1", Guesses: 20}
	begins := make([]func() guessed, 10)
	for i := range begins {
		begins[i] = g.start(t)
	}
	did := make([]guessed, len(begins))
	var wg sync.WaitGroup
	for i, begin := range begins {
		wg.Go(func() { did[i] = begin() })
	}
	wg.Wait()
	var all guessed
	for _, d := range did {
		all.Verified, all.Refused, all.In, all.Mails = all.Verified+d.Verified, all.Refused+d.Refused, all.In+d.In, all.Mails+d.Mails
	}
	if want := (guessed{Verified: 5, Refused: 195, Mails: 1}); all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
}

// What is counted is the failures, and the attempts that nobody ended.
func TestASuccessIsGivenBackAndADeadProcessIsNot(t *testing.T) {
	testkit.Clients.Need(t)
	if isGuesser(t) {
		return
	}
	t.Parallel()
	g := guesser{Endpoint: dynamotest.Endpoint(t), Table: dynamotest.Table(t), Account: "a1", Guesses: 1}
	app := testkit.Must(signedIn(t.Context(), g.Endpoint, g.Table))(t)
	counted := func(want int64, locked bool, after string) {
		t.Helper()
		d, err := app.Status(t.Context(), "sign_in", appclient.Request{UserID: "a1"})
		if err != nil || d.ActivityCount != want || d.Locked != locked {
			t.Errorf("after %s, %d attempts count, locked: %v, %v; want %d, locked: %v", after, d.ActivityCount, d.Locked, err, want, locked)
		}
	}
	dead, right, wrong := g, g, g
	dead.Dies, right.Right, wrong.Guesses = true, true, 3
	dead.start(t)()
	counted(1, false, "a process died")
	wrong.start(t)()
	counted(4, false, "three failures")
	if did := right.start(t)(); did.In != 1 || did.Mails != 0 {
		t.Errorf("%+v, want a success, although its check locked", did)
	}
	counted(4, false, "a success")

	// This instance gives its success back, and another one does so again.
	var won appclient.Decision
	ok, err := app.Attempt(t.Context(), "sign_in", appclient.Request{UserID: "a1"}, func(_ context.Context, d appclient.Decision) (bool, error) {
		won = d
		return true, nil
	})
	other, err2 := signedIn(t.Context(), g.Endpoint, g.Table)
	if err := errors.Join(err, err2); !ok || err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := other.ReleaseDecision(t.Context(), won); err != nil {
			t.Error(err)
		}
	}
	counted(4, false, "a success that was given back three times")

	last := g
	if did := last.start(t)(); did.Verified != 1 || did.Mails != 1 {
		t.Errorf("%+v, want a mail for the fifth failure", did)
	}
	counted(5, true, "the fifth failure")
}
