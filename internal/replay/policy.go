package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// aheadOnSQS is how far ahead a reservoir gives places: so long SQS holds a
// message back.
const aheadOnSQS = 15 * time.Minute

// Policy makes a policy of its kind (fixed, log, sliding, bucket or reservoir)
// and rates as [limits.ParseRate] reads them; of several rates, all have to
// allow an action. Burst is of a bucket, 0: as many as the rate has actions.
func Policy(kind string, rates []string, burst int64) (ratelimit.Policy, error) {
	if kind != "bucket" && burst != 0 {
		return nil, fmt.Errorf("a burst is of a bucket, and the policy is %s", kind)
	}
	if burst < 0 {
		return nil, fmt.Errorf("burst is %d, want at least 1", burst)
	}
	var all ratelimit.Several
	for _, rate := range rates {
		limit, window, err := limits.ParseRate(rate)
		if err != nil {
			return nil, err
		}
		p, err := one(kind, limit, window, burst)
		if err != nil {
			return nil, err
		}
		all = append(all, ratelimit.Named{Name: name(rate), Policy: p})
	}
	if len(all) == 1 {
		return all[0].Policy, all[0].Policy.Validate()
	}
	return all, all.Validate()
}

func one(kind string, limit int64, window time.Duration, burst int64) (ratelimit.Policy, error) {
	switch kind {
	case "fixed":
		return ratelimit.FixedWindow{Limit: limit, Window: window}, nil
	case "log":
		return ratelimit.SlidingLog{Limit: limit, Window: window}, nil
	case "sliding":
		return ratelimit.SlidingWindow{Limit: limit, Window: window}, nil
	case "bucket":
		if burst == 0 {
			burst = limit
		}
		return ratelimit.TokenBucket{Limit: limit, Window: window, Burst: burst}, nil
	case "reservoir":
		return ratelimit.Reservoir{Limit: limit, Window: window, Ahead: aheadOnSQS}, nil
	}
	return nil, fmt.Errorf("policy is %+.40q, want fixed, log, sliding, bucket or reservoir", kind)
}

// name is what one of several limits is called: by its window.
func name(rate string) string {
	_, window, _ := strings.Cut(rate, "/")
	for unit, word := range map[string]string{"1s": "second", "1m": "minute", "1h": "hour", "1d": "day"} {
		if window == unit {
			return word
		}
	}
	return window
}

// promise is what people take p to promise: so many actions in so long. Of
// several limits it is that for the shortest time.
func promise(p ratelimit.Policy) (limit int64, window time.Duration) {
	switch p := p.(type) {
	case ratelimit.TokenBucket:
		return p.Limit, p.Window
	case ratelimit.Several:
		for i, m := range p {
			if l, w := promise(m.Policy); i == 0 || w < window {
				limit, window = l, w
			}
		}
		return limit, window
	}
	return p.Quota()
}
