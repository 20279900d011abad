package guard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/lambdafn"
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

// Only a status tells the release: it would make every answer longer.
func TestAStatusTellsTheRelease(t *testing.T) {
	b := newBench(t)
	b.Version = "v0.1.0"
	b.want(`{}`, counted(1, 1))
	b.want(`{"op": "status"}`, figures(true, "ok", 1, fields{"op": "status", "version": "v0.1.0"}))
}

func TestTiersShareOneCount(t *testing.T) {
	b := newBench(t)
	premium := figures(true, "ok", 15, fields{"granted": 15, "receipt": true, "limit": 20, "remaining": 5})
	b.want(`{"tier": "premium", "count": 15}`, premium)
	b.want(`{}`, limited(15)) // this tier's limit is below what is counted
	b.want(`{"tier": "nobody's"}`, limited(15))
	b.want(`{"tier": "premium"}`, figures(true, "ok", 16, fields{"granted": 1, "receipt": true, "limit": 20, "remaining": 4, "crossed": 80}))
}

// When Lambda sends an asynchronous event again, it repeats its own request id.
func TestAnEventThatLambdaSendsAgainIsCountedOnce(t *testing.T) {
	b := newBench(t)
	b.NewID = lambdafn.InvocationID
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
	b.want(`{"count": 9}`, counted(9, 9))
	b.want(`{"count": 2, "partial": true}`, figures(true, "ok", 10, fields{"granted": 1, "waitTime": 60000, "message": message, "receipt": true, "crossed": 100}))
	for _, event := range []string{`{}`, `{"count": 2, "partial": true}`} {
		if _, err := b.ask(event); !errors.As(err, new(*RateLimitExceeded)) || err.Error() != message {
			t.Errorf("%s: the error is %v, want RateLimitExceeded", event, err)
		}
	}
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

// release is the answer to a release of create_post that leaves used counted.
func release(used int) fields { return figures(true, "ok", used, fields{"op": "release"}) }

func TestAReleaseGivesBackOnce(t *testing.T) {
	b := newBench(t)
	got := b.want(`{"count": 3, "requestId": "r1"}`, counted(3, 3))
	if got["at"] != float64(startMillis) || got["requestId"] != "r1" {
		t.Errorf("the receipt is %v, %v, want the time and the id of the check", got["at"], got["requestId"])
	}
	back := `{"op": "release", "requestId": "r1", "count": 2, "at": 1700000040000}`
	b.now = start.Add(time.Second)
	for range 2 { // the repeat changes nothing
		b.want(back, release(1))
	}
	b.want(`{"op": "release", "requestId": "other", "at": 1700000040000}`, release(1))
	b.want(`{"requestId": "r1"}`, counted(1, 2)) // a released id is new again
	b.now = start.Add(time.Minute)               // now the release is too late
	b.want(back, figures(true, "ok", 0, fields{"op": "release", "windowKey": window + 1, "resetAt": end + 60000}))
}

func TestReleaseAndResetFailDuringAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t)
		b.DenyOutage = deny
		b.store.away = errAway
		for _, event := range []string{`{"op": "reset"}`, `{"op": "release", "requestId": "r1", "at": 1700000040000}`} {
			_, err := b.ask(event)
			b.wantUnavailable(event, "the table does not exist", err)
		}
	}
}
