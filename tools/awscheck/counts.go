package awscheck

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// conflicts lets callers race for the same limit: a window that one update counts, and two kinds that must look at the item
// first. Exactly the limit gets through.
func conflicts(ctx context.Context, s *Stack) (Figures, error) {
	figures := Figures{}
	for _, tt := range []struct {
		guard, activity     string
		count, limit, racer int
	}{
		{"PostsGuardFunction", "create_post", 1, 10, 30},
		{"PinsGuardFunction", "pin", 10, 100, 20},
		{"IngestGuardFunction", "ingest", 5, 50, 20},
	} {
		allowed, unavailable, err := s.race(ctx, tt.guard, tt.activity, tt.count, tt.racer)
		if err != nil {
			return figures, err
		}
		figures[tt.activity+"Allowed"], figures[tt.activity+"Unavailable"] = float64(allowed*tt.count), float64(unavailable)
		// A caller may be told that the guard could not decide, because others changed the item before each attempt.
		if n := allowed * tt.count; n > tt.limit || n < tt.limit && unavailable == 0 {
			return figures, fmt.Errorf("%d of %s got through, and the limit is %d", n, tt.activity, tt.limit)
		}
	}
	return figures, nil
}

// race returns how many of several callers get through, and how many get the error Unavailable. If their window ends
// meanwhile, it lets other callers race.
func (s *Stack) race(ctx context.Context, guard, activity string, count, racers int) (allowed, unavailable int, err error) {
	for attempt := range 3 {
		answers := make([]answer, racers)
		if err := s.each(racers, func(i int) (err error) {
			answers[i], err = s.check(ctx, guard, map[string]any{"userId": fmt.Sprint("race-", attempt), "activity": activity, "count": count})
			return err
		}); err != nil {
			return 0, 0, err
		}
		allowed, unavailable = 0, 0
		windows := map[int64]bool{}
		for _, a := range answers {
			switch {
			case a.ErrorType == "Unavailable":
				unavailable++
				continue
			case a.ErrorType != "" || a.Reason != "ok" && a.Reason != "limited":
				return 0, 0, fmt.Errorf("%s was answered %+v", activity, a)
			case a.Allowed:
				allowed++
			}
			windows[a.WindowKey] = true
		}
		if len(windows) <= 1 {
			return allowed, unavailable, nil
		}
	}
	return 0, 0, skipped("a window ended in each of three races")
}

// throttledKey asks about one user until DynamoDB throttles the item, whose ids then take many write units. Each answer must
// be one that the documents name, no window may have more than the limit, and other users must not notice.
func throttledKey(ctx context.Context, s *Stack) (Figures, error) {
	const limit, calls, most = 3000, 15000, 45 * time.Second
	if _, err := program(ctx, "go", "run", "./cmd/guards", "limits", "set", "create_post", fmt.Sprint(limit, "/1m"), "--why", "aws-check", "--table", s.table()); err != nil {
		return nil, err
	}
	if err := until(ctx, time.Minute, "posts-guard follows the live limit", func() (bool, error) {
		a, err := s.ask(ctx, "PostsGuardFunction", "follows", "create_post")
		return a.Limit == limit, err
	}); err != nil {
		return nil, err
	}
	h := &hammered{began: time.Now(), left: calls, answers: map[string]int{}, windows: map[int64]int{}}
	hammering, stop := context.WithTimeout(ctx, most)
	defer stop()
	var wg sync.WaitGroup
	for range s.parallel {
		wg.Go(func() {
			for hammering.Err() == nil && h.more() {
				h.note(s.ask(hammering, "PostsGuardFunction", "hot", "create_post"))
			}
		})
	}
	others, refused := 0, 0
	for hammering.Err() == nil && h.more() && sleep(ctx, 250*time.Millisecond) {
		others++
		if a, err := s.ask(ctx, "PostsGuardFunction", fmt.Sprint("quiet-", others), "create_post"); err != nil || !a.Allowed {
			refused++
		}
	}
	stop()
	wg.Wait()
	figures := h.figures()
	figures["othersAsked"], figures["othersRefused"] = float64(others), float64(refused)
	switch {
	case h.wrong != "":
		return figures, fmt.Errorf("an answer was %s", h.wrong)
	case figures["mostInAWindow"] > limit:
		return figures, fmt.Errorf("%v got through in a window, and the limit is %d", figures["mostInAWindow"], limit)
	case h.answers["Unavailable"] == 0:
		return figures, skipped("nothing was throttled at this rate: run it from a machine in the region, or raise the account's concurrency")
	case refused > 0:
		return figures, fmt.Errorf("%d of %d other users were refused", refused, others)
	}
	return figures, s.logged(ctx, "the table is throttled")
}

// logged returns an error if no guard has logged this cause of an outage.
func (s *Stack) logged(ctx context.Context, cause string) error {
	return until(ctx, time.Minute, "the log names the cause: "+cause, func() (bool, error) {
		var out struct{ Events []struct{ Message string } }
		err := s.aws(ctx, &out, "logs", "filter-log-events", "--log-group-name", s.ids["LogGroup"], "--filter-pattern", `{ $.message = "table unavailable" }`)
		for _, e := range out.Events {
			if strings.Contains(e.Message, cause) {
				return true, nil
			}
		}
		return false, err
	})
}

// hammered counts the answers about one user.
type hammered struct {
	began   time.Time
	mu      sync.Mutex
	left    int            // calls that may still be made
	answers map[string]int // by reason or error; "": none, because Lambda had no free instance or the time was over
	windows map[int64]int  // allowed, by window
	after   time.Duration  // until the first answer Unavailable
	wrong   string         // an answer that no document names
}

// more reports whether another call is needed: some are left, and the item has been throttled for less than 15 s.
func (h *hammered) more() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left--
	return h.left >= 0 && (h.after == 0 || time.Since(h.began) < h.after+15*time.Second)
}

// note counts an answer.
func (h *hammered) note(a answer, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kind := a.Reason + a.ErrorType
	switch {
	case a.Allowed && kind == "ok":
		h.windows[a.WindowKey]++
	case kind == "Unavailable" && h.answers[kind] == 0:
		h.after = time.Since(h.began)
	case err == nil && kind != "Unavailable" && kind != "limited":
		h.wrong = fmt.Sprintf("%+v", a)
	}
	h.answers[kind]++
}

func (h *hammered) figures() Figures {
	f := Figures{"throttledAfterMillis": float64(h.after.Milliseconds())}
	total := 0
	for kind, n := range h.answers {
		total += n
		f[cmp.Or(kind, "none")] = float64(n)
	}
	for _, n := range h.windows {
		f["mostInAWindow"] = max(f["mostInAWindow"], float64(n))
	}
	f["callsPerSecond"] = round(float64(total) / time.Since(h.began).Seconds())
	return f
}
