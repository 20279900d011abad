package outage_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A realHotKey is a real guard and a table that throttles one of its users. The
// table goes on deciding for the others.
type realHotKey struct {
	*guard
	throttle     *dynamotest.Proxy // the way of the requests about u0
	began, ended time.Time
}

func startHotKey(t *testing.T) *realHotKey {
	t.Helper()
	table, throttle := dynamotest.Table(t), dynamotest.NewProxy(t)
	return &realHotKey{guard: startGuard(t, table, fork(t, "u0", throttle, dynamotest.NewProxy(t))), throttle: throttle}
}

func (h *realHotKey) run(ctx context.Context) error {
	if err := h.askUntilTable(ctx, "u0"); err != nil {
		return err
	}
	h.began = time.Now()
	h.throttle.Fail(math.MaxInt, dynamotest.Throttle)
	err := h.askFor(ctx, prove.Bound(2*time.Second, 3*time.Minute), "u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9")
	err = errors.Join(err, h.askUntilTable(ctx, "u1")) // on a busy machine, askFor may have no time left for other users
	h.throttle.Heal()
	h.ended = time.Now()
	return errors.Join(err, h.askUntilTable(ctx, "u0"))
}

func (h *realHotKey) judge(t *testing.T, figures *figures) {
	t.Helper()
	h.count(t)
	var busy, others summary
	decided, missed, passedOver := 0, 0, 0
	for _, a := range h.answers {
		r := record{start: a.start, end: a.start.Add(a.took), requests: a.requests}
		switch {
		case a.start.Before(h.began), a.start.After(h.ended):
		case a.user == "u0":
			busy.add(r)
		default:
			others.add(r)
			switch {
			case a.byTable():
				decided++
			case a.Reason == "unavailable" && a.requests > 0:
				missed++ // this machine was too busy to answer within a second
			case a.Reason == "unavailable":
				passedOver++
			}
		}
	}
	if missed == 0 && passedOver > 0 || decided == 0 {
		t.Errorf("for other keys than the throttled one, the table made %d decisions and was not asked for %d", decided, passedOver)
	}
	last := h.answers[len(h.answers)-1]
	figures.hotKey = append(figures.hotKey,
		busy.hotCells("real: the throttled key", 0, last.start.Add(last.took).Sub(h.ended)),
		others.hotCells("real: 9 other keys", decided, 0))
}
