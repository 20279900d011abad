package awscheck

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// An answer is a guard's answer, or the error of a function.
type answer struct {
	Allowed                 bool
	Reason                  string
	Limit, WindowKey        int64
	ErrorType, ErrorMessage string
}

// An invocation is what Lambda itself reports of one.
type invocation struct {
	Duration, Billed float64 // ms
	Init, Restore    float64 // ms; 0: the environment was already there
	Memory           float64 // MB, the most that the environment has used
}

// invoke invokes a function, by its name in the template, and decodes its answer into out. The report is empty if Lambda
// sent none.
func (s *Stack) invoke(ctx context.Context, function, version string, event, out any) (r invocation, err error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return r, err
	}
	in := &lambda.InvokeInput{FunctionName: aws.String(s.ids[function]), Payload: payload, LogType: types.LogTypeTail}
	if version != "" {
		in.Qualifier = &version
	}
	got, err := s.lambda.Invoke(ctx, in)
	if err != nil {
		return r, fmt.Errorf("invoke %s: %w", function, err)
	}
	if err := json.Unmarshal(got.Payload, out); err != nil {
		return r, fmt.Errorf("%s answered %.200q: %w", function, got.Payload, err)
	}
	log, _ := base64.StdEncoding.DecodeString(aws.ToString(got.LogResult)) // without a log, there is no report
	return parseReport(string(log)), nil
}

// ask asks a guard for one action of a user.
func (s *Stack) ask(ctx context.Context, guard, user, activity string) (answer, error) {
	return s.check(ctx, guard, map[string]any{"userId": user, "activity": activity})
}

func (s *Stack) check(ctx context.Context, guard string, event map[string]any) (a answer, err error) {
	_, err = s.invoke(ctx, guard, "", event, &a)
	return a, err
}

// each calls do n times, and lets as many calls run at once as the account allows. It returns all errors.
func (s *Stack) each(n int, do func(i int) error) error {
	errs, slots := make([]error, n), make(chan struct{}, s.parallel)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// parseReport finds Lambda's report in the end of a log. Functions whose log is JSON have it as JSON, too.
func parseReport(log string) (r invocation) {
	for line := range strings.Lines(log) {
		var event struct {
			Type   string
			Record struct {
				Metrics struct{ DurationMs, BilledDurationMs, InitDurationMs, RestoreDurationMs, MaxMemoryUsedMB float64 }
			}
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Type == "platform.report" {
			m := event.Record.Metrics
			r = invocation{m.DurationMs, m.BilledDurationMs, m.InitDurationMs, m.RestoreDurationMs, m.MaxMemoryUsedMB}
		}
		if !strings.HasPrefix(line, "REPORT ") {
			continue
		}
		figures := map[string]*float64{
			"Duration": &r.Duration, "Billed Duration": &r.Billed, "Init Duration": &r.Init, "Restore Duration": &r.Restore, "Max Memory Used": &r.Memory,
		}
		for part := range strings.SplitSeq(line, "\t") {
			name, text, _ := strings.Cut(part, ": ")
			if value := figures[name]; value != nil {
				_, _ = fmt.Sscan(text, value) // a number and a unit
			}
		}
	}
	return r
}

// A probed is the answer of a probe: the code of AWS's error, or what its agent has answered.
type probed struct {
	Error       string
	Listening   string    // what the agent's /health answered before the first invocation: a status, or an error
	Answers     []answer  // of the agent
	Millis      []float64 // of each answer
	Environment string    // the log stream, which differs in each environment

	ErrorType, ErrorMessage string // the probe itself failed
}

// call lets a probe call AWS with its role, and returns the code of the error, or nothing.
func (s *Stack) call(ctx context.Context, probe, service, method string, args map[string]any) (string, error) {
	var p probed
	_, err := s.invoke(ctx, probe, "", map[string]any{"service": service, "method": method, "args": args}, &p)
	if err == nil && p.ErrorType != "" {
		err = fmt.Errorf("%s failed: %s: %s", probe, p.ErrorType, p.ErrorMessage)
	}
	return p.Error, err
}
