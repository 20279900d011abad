package awscheck

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// agent starts a function with the agent's layer and the same function without it, and compares what Lambda reports of both.
func agent(ctx context.Context, s *Stack) (Figures, error) {
	const starts, calls = 5, 200
	var with, without, memoryWith, memoryWithout, first, later []float64
	for n := range starts {
		var nothing struct{}
		r, _, err := s.start(ctx, "BackendProbe", n, nothing, &nothing)
		if err != nil {
			return nil, err
		}
		without, memoryWithout = append(without, r.Init), append(memoryWithout, r.Memory)

		asks := make([]map[string]string, calls) // about new users, one after the other
		for i := range asks {
			asks[i] = map[string]string{"userId": fmt.Sprintf("agent-%d-%d", n, i), "activity": "create_post"}
		}
		var p probed
		if r, _, err = s.start(ctx, "AppProbe", n, map[string]any{"asks": asks}, &p); err != nil {
			return nil, err
		}
		if err := p.answered(calls); err != nil {
			return nil, err
		}
		with, memoryWith = append(with, r.Init), append(memoryWith, r.Memory)
		first, later = append(first, p.Millis[0]), append(later, p.Millis[1:]...)
	}
	return Figures{
		"initWithP50Millis": quantile(with, 0.5), "initWithoutP50Millis": quantile(without, 0.5),
		"memoryWithMB": quantile(memoryWith, 0.5), "memoryWithoutMB": quantile(memoryWithout, 0.5),
		"firstCheckP50Millis": quantile(first, 0.5), "checkP50Millis": quantile(later, 0.5), "checkP99Millis": quantile(later, 0.99),
	}, nil
}

// answered returns an error unless the agent was there before the app's code and has allowed each of these actions.
func (p probed) answered(calls int) error {
	switch {
	case p.ErrorType != "":
		return fmt.Errorf("the probe failed: %s: %s", p.ErrorType, p.ErrorMessage)
	case p.Listening != "200":
		return fmt.Errorf("before the app's code, the agent's /health answered %s", p.Listening)
	case len(p.Answers) != calls:
		return fmt.Errorf("%d answers, want %d", len(p.Answers), calls)
	}
	if i := slices.IndexFunc(p.Answers, func(a answer) bool { return !a.Allowed || a.Reason != "ok" }); i >= 0 {
		return fmt.Errorf("the agent answered %+v, want it allowed", p.Answers[i])
	}
	return nil
}

// snapStart starts many agents from one snapshot, and asks all of them about one user. Each must make request ids of its own:
// with equal ids, a request would count as the repeat of another agent's.
func snapStart(ctx context.Context, s *Stack) (Figures, error) {
	const agents, limit = 20, 10
	name := aws.String(s.ids["AppProbe"])
	began := time.Now()
	published, err := s.lambda.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: name})
	if err != nil {
		return nil, err
	}
	version := *published.Version
	if err := until(ctx, 5*time.Minute, "Lambda has made the snapshot", func() (bool, error) {
		now, err := s.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: name, Qualifier: &version})
		if err == nil && now.State == types.StateFailed {
			err = fmt.Errorf("the snapshot failed: %s", aws.ToString(now.StateReason))
		}
		return err == nil && now.State == types.StateActive, err
	}); err != nil {
		return nil, err
	}
	figures := Figures{"snapshotSeconds": round(time.Since(began).Seconds())}
	answers, reports := make([]probed, agents), make([]invocation, agents)
	event := map[string]any{"asks": []any{map[string]string{"userId": "snapstart", "activity": "create_post"}}, "sleep": 2}
	sleep(ctx, time.Until(time.Now().Truncate(time.Minute).Add(65*time.Second))) // one window, after a clock that is 5 s ahead
	if err := s.each(agents, func(i int) (err error) {
		reports[i], err = s.invoke(ctx, "AppProbe", version, event, &answers[i])
		return err
	}); err != nil {
		return figures, err
	}
	allowed, environments, restore := 0, map[string]bool{}, []float64(nil)
	for i, p := range answers {
		if len(p.Answers) != 1 {
			return figures, fmt.Errorf("a restored environment answered %+v", p)
		}
		switch a := p.Answers[0]; {
		case a.Allowed && a.Reason == "ok":
			allowed++
		case a.Reason != "limited":
			return figures, fmt.Errorf("a restored agent answered %+v, want ok or limited", a)
		}
		environments[p.Environment] = true
		if reports[i].Restore > 0 {
			restore = append(restore, reports[i].Restore)
		}
	}
	figures["environments"], figures["allowed"], figures["restoreP50Millis"] = float64(len(environments)), float64(allowed), quantile(restore, 0.5)
	switch {
	case allowed != limit:
		return figures, fmt.Errorf("%d got through, and the limit is %d", allowed, limit)
	case len(restore) < 2:
		return figures, skipped("fewer than two environments were restored: the account has too few instances")
	}
	return figures, nil
}
