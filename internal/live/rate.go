package live

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// withRates returns p with other rates. If p is several limits, text has a rate for
// each, separated by commas.
func withRates(p ratelimit.Policy, text string) (ratelimit.Policy, error) {
	several, ok := p.(ratelimit.Several)
	if !ok {
		return withRate(p, text)
	}
	rates := strings.Split(text, ",")
	if len(rates) != len(several) {
		return nil, fmt.Errorf("limit is %q, want %d rates: %s", text, len(several), Rates(p))
	}
	changed := make(ratelimit.Several, len(several))
	for i, m := range several {
		p, err := withRate(m.Policy, rates[i])
		if err != nil {
			return nil, err
		}
		changed[i] = ratelimit.Named{Name: m.Name, Policy: p}
	}
	return changed, nil
}

// withRate returns p with another rate. Except for a bucket, the window must keep
// its length, because the counts of another window would be lost.
func withRate(p ratelimit.Policy, text string) (ratelimit.Policy, error) {
	rate, burst, hasBurst := strings.Cut(text, "+")
	limit, window, err := limits.ParseRate(rate)
	if err != nil {
		return nil, err
	}
	var changed ratelimit.Policy
	kept := window
	switch p := p.(type) {
	case ratelimit.FixedWindow:
		changed, kept = ratelimit.FixedWindow{Limit: limit, Window: window}, p.Window
	case ratelimit.SlidingWindow:
		changed, kept = ratelimit.SlidingWindow{Limit: limit, Window: window}, p.Window
	case ratelimit.Reservoir:
		changed, kept = ratelimit.Reservoir{Limit: limit, Window: window, Ahead: p.Ahead}, p.Window
	case ratelimit.SlidingLog:
		changed, kept = ratelimit.SlidingLog{Limit: limit, Window: window}, p.Window
	case ratelimit.TokenBucket:
		p.Limit, p.Window = limit, window
		if hasBurst {
			if p.Burst, err = strconv.ParseInt(burst, 10, 64); err != nil {
				return nil, fmt.Errorf("burst is %q, want a whole number of at least 1", burst)
			}
		}
		changed = p
	default:
		return nil, fmt.Errorf("a %T cannot be changed without a deploy", p)
	}
	if _, bucket := p.(ratelimit.TokenBucket); hasBurst && !bucket {
		return nil, errors.New("only a bucket has a burst")
	}
	if kept != window {
		return nil, fmt.Errorf("window is %s, want %s: another window would lose what is counted", short(window), short(kept))
	}
	return changed, changed.Validate()
}

// Rates returns the rates of p in the form that settings have.
func Rates(p ratelimit.Policy) string {
	switch p := p.(type) {
	case ratelimit.TokenBucket:
		rate := rate(p.Limit, p.Window)
		if p.Burst != 1 {
			rate += "+" + strconv.FormatInt(p.Burst, 10)
		}
		return rate
	case ratelimit.Several:
		rates := make([]string, len(p))
		for i, m := range p {
			rates[i] = Rates(m.Policy)
		}
		return strings.Join(rates, ",")
	}
	return rate(p.Quota())
}

func rate(limit int64, window time.Duration) string {
	return strconv.FormatInt(limit, 10) + "/" + short(window)
}

// short returns a duration without zero units: 1m, not 1m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
