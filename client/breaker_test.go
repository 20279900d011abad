package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
)

// What a call of a timeline comes to.
const (
	answered = "answered"
	lost     = "lost"     // after 3 s without an answer
	paused   = "not sent" // because of another call
	givenUp  = "given up" // by its caller
)

// A timed call begins at a time. The function is silent if the call comes to lost
// or givenUp, and otherwise answers at once.
type timed struct {
	at   time.Duration
	want string
	ends time.Duration // when a caller gives up
}

// Calls of one function overlap.
func TestTheBreaker(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for name, calls := range map[string][]timed{
		"a lost call opens it for a second":                    {{0, lost, 0}, {3001 * ms, paused, 0}, {3999 * ms, paused, 0}, {4 * s, answered, 0}, {4001 * ms, answered, 0}},
		"not if another call was answered meanwhile":           {{0, lost, 0}, {1 * s, answered, 0}, {3001 * ms, answered, 0}},
		"an answer before the lost call began says nothing":    {{0, answered, 0}, {1 * s, lost, 0}, {4001 * ms, paused, 0}},
		"a second lost call does not make the pause longer":    {{0, lost, 0}, {900 * ms, lost, 0}, {3999 * ms, paused, 0}, {4 * s, answered, 0}},
		"a lost probe makes the pause longer":                  {{0, lost, 0}, {4 * s, lost, 0}, {4500 * ms, paused, 0}, {7001 * ms, paused, 0}, {8 * s, answered, 0}},
		"a stale probe does not open it again":                 {{0, lost, 0}, {4 * s, lost, 0}, {5 * s, answered, 0}, {6 * s, answered, 0}, {7001 * ms, answered, 0}},
		"only the latest probe makes the pause longer":         {{0, lost, 0}, {4 * s, lost, 0}, {5 * s, lost, 0}, {6 * s, lost, 0}, {7001 * ms, answered, 0}},
		"the latest probe, given up, lets another one through": {{0, lost, 0}, {4 * s, givenUp, 4200 * ms}, {4100 * ms, paused, 0}, {4201 * ms, answered, 0}},
		"a stale probe, given up, lets nobody through":         {{0, lost, 0}, {4 * s, givenUp, 5500 * ms}, {5 * s, lost, 0}, {5501 * ms, paused, 0}, {6 * s, answered, 0}},
		"another call, given up, lets nobody through":          {{0, lost, 0}, {900 * ms, givenUp, 3500 * ms}, {3501 * ms, paused, 0}, {4 * s, answered, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, calls) })
		})
	}
}

func play(t *testing.T, calls []timed) {
	t.Helper()
	g := open(t, client.Options{Activities: activities, MaxTries: 1, Client: fake(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		var e event
		if err := json.Unmarshal(in.Payload, &e); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(e.UserID)
		if err != nil {
			return nil, err
		}
		if calls[i].want == lost || calls[i].want == givenUp {
			return silent(ctx)
		}
		return body(okBody)(ctx)
	})})
	began := time.Now()
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			time.Sleep(c.at)
			ctx := t.Context()
			if c.want == givenUp {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				time.AfterFunc(c.ends-c.at, cancel)
			}
			_, err := g.Status(ctx, "create_post", client.Request{UserID: strconv.Itoa(i)})
			if got := outcome(err); got != c.want {
				t.Errorf("the call at %v is %s, want %s: %v", c.at, got, c.want, err)
			}
			if took := time.Since(began) - c.at; c.want == lost && took != 3*time.Second {
				t.Errorf("the call at %v took %v", c.at, took)
			}
		})
	}
	wg.Wait()
}

func outcome(err error) string {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, context.Canceled) && kindOf(err) == nil:
		return givenUp
	case errors.Is(err, client.ErrOutage) && err.Error() == "posts-guard did not answer a moment ago":
		return paused
	case errors.Is(err, client.ErrOutage):
		return lost
	}
	return err.Error()
}
