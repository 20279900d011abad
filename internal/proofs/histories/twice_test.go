package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A busy is a party whose room is full of visitors. In each turn, all instances but the last
// send the same action at nearly the same time, and the last one lets a visitor leave.
type busy struct {
	*party

	receipts []int64 // of the visitors
}

const busyTurns = partyIDs // and as many places in the room

// fill lets visitors take each place in the room.
func (b *busy) fill(t *testing.T, l *ratelimit.Limiter) {
	t.Helper()
	for n := range busyTurns {
		v := fmt.Sprint("visitor", n)
		d, err := l.DecideAll(calm(t), ratelimit.Check, b.parts(v, v), false)
		if err != nil || !d.Allowed {
			t.Fatalf("%s: %s is told %+v, error %v", b.name, v, d, err)
		}
		b.visitors, b.receipts = append(b.visitors, v), append(b.receipts, d.At)
	}
}

// leave lets a visitor leave.
func (b *busy) leave(ctx context.Context, l *ratelimit.Limiter, n int) {
	parts := b.parts(b.visitors[n], b.visitors[n])
	for i := range parts {
		parts[i].At = b.receipts[n]
	}
	_, _ = l.DecideAll(ctx, ratelimit.Release, parts, false) // if it fails, the visitor stays
}

// Two attempts of each request run side by side in a full room whose places come free. At the
// end, the user and the room count what was admitted, and at most the limit.
func TestAttemptsSideBySideInABusyRoom(t *testing.T) {
	prove.Explain(t, "histories")
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	rig := newRig(t, proxy, table)
	kinds := []string{"", "log ", "sliding ", "bucket "}
	admitted := 0
	for n := range prove.Bound(16, 500) {
		b := &busy{party: &party{
			name: fmt.Sprint("busy", n, "-"), admitted: map[[2]string]bool{},
			of: policy.Must(kinds[n%4] + "6/1h"), room: policy.Must(fmt.Sprint(kinds[n/4%4], busyTurns, "/1h")),
		}}
		b.fill(t, newLimiter(rig.stores[0], standsStill))
		for turn := range busyTurns {
			r := rush{rig: rig, seed: uint64(n*busyTurns + turn), times: 1, lossy: n%4 == 3}
			r.act = func(ctx context.Context, l *ratelimit.Limiter, instance string, random *rand.Rand) func() {
				time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
				if instance[0] == '0'+instances-1 {
					b.leave(ctx, l, turn)
					return func() {}
				}
				return b.send(ctx, t, l, "u0", fmt.Sprint("r", turn))
			}
			r.run(t)
		}
		b.judge(t, newLimiter(rig.stores[0], standsStill))
		admitted += len(b.admitted)
	}
	if admitted == 0 {
		t.Error("nothing was admitted")
	}
}
