package outage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A guard is the real binary of the posts-guard, as production configures it,
// and a record of what it answered.
type guard struct {
	*lambdatest.Instance
	answers []answer
}

// An answer is one decision of a guard.
type answer struct {
	user  string
	start time.Time
	took  time.Duration // as Lambda bills it

	Allowed   bool
	Reason    string
	WindowKey int64

	requests int // from the guard's log
}

// limit is what the posts-guard allows in a minute.
const limit = 10

func startGuard(t testing.TB, table, endpoint string, env ...string) *guard {
	t.Helper()
	env = append([]string{
		"TABLE_NAME=" + table, "AWS_ENDPOINT_URL_DYNAMODB=" + endpoint,
		"AWS_LAMBDA_LOG_LEVEL=DEBUG", // a line for each decision
	}, env...)
	return &guard{Instance: lambdatest.Start(t, lambdatest.Build(t, "./functions/posts-guard"), env...)}
}

// ask lets user create a post.
func (g *guard) ask(ctx context.Context, user string) (answer, error) {
	a := answer{user: user, start: time.Now()}
	r, err := g.Do(ctx, lambdatest.Invocation{Payload: fmt.Appendf(nil, `{"userId": %q, "activity": "create_post"}`, user)})
	a.took = r.Duration
	switch {
	case err != nil:
	case r.ErrorType == "Unavailable":
		a.Reason = "unavailable"
	case r.ErrorType != "":
		err = fmt.Errorf("%s: %s", r.ErrorType, r.ErrorMessage)
	default:
		err = json.Unmarshal(r.Payload, &a)
	}
	if err == nil {
		g.answers = append(g.answers, a)
	}
	return a, err
}

// askUntilTable asks until the table decides. A minute is far more than that
// should take.
func (g *guard) askUntilTable(ctx context.Context, user string) error {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if a, err := g.ask(ctx, user); err != nil || a.Reason == "ok" || a.Reason == "limited" {
			return err
		}
	}
	return errors.New("the table did not decide for a minute")
}

// askFor asks for some time, for users in turn.
func (g *guard) askFor(ctx context.Context, d time.Duration, users ...string) error {
	began := time.Now()
	for i := 0; time.Since(began) < d; i++ {
		if _, err := g.ask(ctx, users[i%len(users)]); err != nil {
			return err
		}
		time.Sleep(25 * time.Millisecond)
	}
	return nil
}

// each runs do for every guard at the same time.
func each[G any](guards []G, do func(G) error) error {
	failed := make([]error, len(guards))
	var all sync.WaitGroup
	for i, g := range guards {
		all.Go(func() { failed[i] = do(g) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// count reads from the guard's log how many requests each decision sent.
func (g *guard) count(t testing.TB) {
	t.Helper()
	i := 0
	for line := range strings.Lines(g.Logs()) {
		var m struct {
			Message  string
			Requests int
		}
		if json.Unmarshal([]byte(line), &m) != nil || m.Message != "decision" {
			continue
		}
		if i < len(g.answers) {
			g.answers[i].requests = m.Requests
		}
		i++
	}
	if i != len(g.answers) {
		t.Fatalf("the guard's log shows %d decisions, want %d", i, len(g.answers))
	}
}

// byTable reports whether the table has decided.
func (a answer) byTable() bool { return a.Reason == "ok" || a.Reason == "limited" && a.requests > 0 }

// A ledger counts what was allowed to one user in one minute.
type ledger map[string]int

// add counts a, if it allowed something.
func (l ledger) add(a answer) {
	if a.Allowed {
		l[fmt.Sprint(a.user, " in minute ", a.WindowKey)]++
	}
}

// keep fails the test if the limit is not kept, and returns the highest count.
func (l ledger) keep(t testing.TB, who string) (most int) {
	t.Helper()
	for which, n := range l {
		most = max(most, n)
		if n > limit {
			t.Errorf("%s: %s: %d allowed, want at most %d", who, which, n, limit)
		}
	}
	return most
}
