package guard_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	. "github.com/cric-talk/guards/internal/guard"
)

func TestACheckIsAllowedUntilTheLimitIsReached(t *testing.T) {
	b := newBench(t)
	for n := range 10 {
		b.want(`{}`, counted(1, n+1))
	}
	b.now = start.Add(18 * time.Second)
	b.want(`{}`, figures(false, "limited", 10, fields{"granted": 0, "waitTime": 42000, "message": message}))
	b.now = start.Add(time.Minute)
	b.want(`{}`, figures(true, "ok", 1, fields{"granted": 1, "receipt": true, "windowKey": window + 1, "resetAt": end + 60000}))
}

func TestAPartialGrantTakesWhatFits(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 7}`, counted(7, 7))
	b.want(`{"op": "status", "count": 5, "partial": true}`, figures(true, "ok", 7, fields{"op": "status", "waitTime": 60000, "message": message}))
	b.want(`{"count": 5, "partial": true}`, figures(true, "ok", 10, fields{"granted": 3, "waitTime": 60000, "message": message, "receipt": true, "crossed": 100}))
	b.want(`{"count": 5, "partial": true}`, limited(10))
}

func TestARepeatedRequestIdIsCountedOnce(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 2, "requestId": "r1"}`, counted(2, 2))
	b.want(`{"count": 8}`, counted(8, 10))
	b.want(`{"count": 2, "requestId": "r1"}`, figures(true, "duplicate", 10, fields{"granted": 2}))
	b.want(`{"op": "status", "requestId": "r1"}`, figures(true, "duplicate", 10, fields{"op": "status"}))
}

// If the first attempt is counted but its answer is lost, the second attempt
// finds the id. Somebody else may have counted a caller's own id, at another
// time. So the answer to such an id has no receipt.
func TestALostAnswerLeavesAReceiptOnlyForTheGuardsOwnId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.lose = 1
		b.want(`{"requestId": "r1"}`, figures(true, "ok", 1, fields{"granted": 1}))
		if b.store.asked != 2 {
			t.Errorf("%d requests, want 2", b.store.asked)
		}
		b.store.lose = 1
		b.want(`{}`, counted(1, 2))
	})
}

func TestTiersShareOneCount(t *testing.T) {
	b := newBench(t)
	premium := figures(true, "ok", 15, fields{"granted": 15, "receipt": true, "limit": 20, "remaining": 5})
	b.want(`{"tier": "premium", "count": 15}`, premium)
	b.want(`{}`, limited(15)) // this tier's limit is below what is counted
	b.want(`{"tier": "nobody's"}`, limited(15))
	b.want(`{"tier": "premium"}`, figures(true, "ok", 16, fields{"granted": 1, "receipt": true, "limit": 20, "remaining": 4, "crossed": 80}))
}

// An instance that refused may refuse again for at most a second after another
// instance released, reset or raised the limit.
func TestAnInstanceRefusesForASecondAfterAnotherOneReset(t *testing.T) {
	one, two := newBench(t), newBench(t)
	two.store.Store = one.store.Store
	one.want(`{"count": 10}`, counted(10, 10))
	two.want(`{}`, limited(10))
	one.want(`{"op": "reset"}`, figures(true, "ok", 0, fields{"op": "reset"}))
	two.want(`{}`, limited(10))
	two.now = start.Add(1001 * time.Millisecond)
	two.want(`{}`, counted(1, 1))
}

// When Lambda sends an asynchronous event again, it repeats its own request id.
func TestAnEventThatLambdaSendsAgainIsCountedOnce(t *testing.T) {
	b := newBench(t)
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "from-lambda"})
	for _, reason := range []string{"ok", "duplicate"} {
		out, err := b.Invoke(ctx, []byte(`{"userId": "u1", "activity": "create_post"}`))
		if got := parse(t, out); err != nil || got["reason"] != reason || got["activityCount"] != 1.0 {
			t.Errorf("%s, %v, want %s and one counted", out, err, reason)
		}
	}
}

func TestARefusalCanBeAnError(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	b.want(`{"count": 10}`, counted(10, 10))
	for _, event := range []string{`{}`, `{"count": 2, "partial": true}`} {
		if _, err := b.ask(event); !errors.As(err, new(*RateLimitExceeded)) || err.Error() != message {
			t.Errorf("%s: the error is %v, want RateLimitExceeded", event, err)
		}
	}
}

func TestAPartialGrantIsNoError(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	b.want(`{"count": 9}`, counted(9, 9))
	b.want(`{"count": 2, "partial": true}`, figures(true, "ok", 10, fields{"granted": 1, "waitTime": 60000, "message": message, "receipt": true, "crossed": 100}))
}

// A status decides as a check would now, but counts nothing and is never an
// error.
func TestAStatusCountsNothing(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	for range 2 {
		b.want(`{"op": "status"}`, figures(true, "ok", 0, fields{"op": "status"}))
	}
	b.want(`{"count": 10}`, counted(10, 10))
	before := b.store.asked
	b.want(`{"op": "status"}`, figures(false, "limited", 10, fields{"op": "status", "waitTime": 60000, "message": message}))
	if b.store.asked != before+1 {
		t.Errorf("a status sent %d requests, want one read", b.store.asked-before)
	}
}
