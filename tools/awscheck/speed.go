package awscheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// assumedMillis is what docs/operating.md assumes that Lambda bills for a decision.
const assumedMillis = 10

// latency asks a warm guard about one new user after the other. The time of a call includes the network between this
// machine and the region.
func latency(ctx context.Context, s *Stack) (Figures, error) {
	const warm, calls = 5, 200
	var client, duration, billed []float64
	for n := range warm + calls {
		began := time.Now()
		var a answer
		r, err := s.invoke(ctx, "PostsGuardFunction", "", map[string]any{"userId": fmt.Sprint("latency-", n), "activity": "create_post"}, &a)
		if err != nil {
			return nil, err
		}
		if !a.Allowed || a.Reason != "ok" {
			return nil, fmt.Errorf("a user's first action was answered %+v, want it allowed", a)
		}
		if n < warm || r.Init > 0 {
			continue
		}
		client = append(client, time.Since(began).Seconds()*1000)
		if r.Duration > 0 {
			duration, billed = append(duration, r.Duration), append(billed, r.Billed)
		}
	}
	figures := Figures{"calls": float64(len(client)), "callP50Millis": quantile(client, 0.5), "callP99Millis": quantile(client, 0.99)}
	if s.Endpoint != "" {
		return figures, nil // an emulator reports no time that means anything
	}
	if len(duration) == 0 {
		return figures, errors.New("the answers contain no report of Lambda")
	}
	figures["durationP50Millis"], figures["durationP99Millis"] = quantile(duration, 0.5), quantile(duration, 0.99)
	figures["billedP50Millis"] = quantile(billed, 0.5)
	if median := figures["billedP50Millis"]; median > assumedMillis {
		return figures, fmt.Errorf("a decision is billed as %v ms, and docs/operating.md assumes %d", median, assumedMillis)
	}
	return figures, nil
}

// coldStart starts new environments of a guard.
func coldStart(ctx context.Context, s *Stack) (Figures, error) {
	var init, total []float64
	for n := range 5 {
		var a answer
		r, took, err := s.start(ctx, "PostsGuardFunction", n, map[string]any{"userId": fmt.Sprint("cold-", n), "activity": "create_post"}, &a)
		if err != nil {
			return nil, err
		}
		if !a.Allowed {
			return nil, fmt.Errorf("a new environment's first answer was %+v, want it allowed", a)
		}
		init, total = append(init, r.Init), append(total, took)
	}
	return Figures{
		"starts": float64(len(init)), "initP50Millis": quantile(init, 0.5), "initMaxMillis": quantile(init, 1),
		"callP50Millis": quantile(total, 0.5), "callMaxMillis": quantile(total, 1),
	}, nil
}

// start changes a function's variables, so that the next invocation needs a new environment, and invokes it. It returns
// Lambda's report and the time of the call in ms.
func (s *Stack) start(ctx context.Context, function string, n int, event, out any) (r invocation, millis float64, err error) {
	name := aws.String(s.ids[function])
	had, err := s.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: name})
	if err != nil {
		return r, 0, err
	}
	variables := had.Environment.Variables
	variables["AWS_CHECK"] = fmt.Sprint(n)
	if _, err := s.lambda.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
		FunctionName: name, Environment: &types.Environment{Variables: variables},
	}); err != nil {
		return r, 0, err
	}
	if err := until(ctx, time.Minute, function+" is updated", func() (bool, error) {
		now, err := s.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: name})
		return err == nil && now.LastUpdateStatus == types.LastUpdateStatusSuccessful, err
	}); err != nil {
		return r, 0, err
	}
	began := time.Now()
	r, err = s.invoke(ctx, function, "", event, out)
	if err == nil && r.Init == 0 {
		err = fmt.Errorf("%s started no new environment, or Lambda did not report it", function)
	}
	return r, time.Since(began).Seconds() * 1000, err
}
