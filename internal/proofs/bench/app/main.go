//go:build unix

// App is an app in Go that asks a guard by one way, or decides in its own process. Its arguments
// are the way, an address, and for a limiter the table. The files app.mjs and app.py are the same
// app in other languages. A comment in program_test.go, in the folder above, describes what they
// read and print.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/proofs/bench/cputime"
	"github.com/cric-talk/guards/limiter"
)

var page = []guards.Guard{{
	Name: "app-guard", Message: "Please wait.", Activities: []guards.Activity{{Name: "act", Limit: "2/1m"}},
}}

type job struct {
	Prefix         string
	Users, Callers int
}

type outcome struct {
	Allowed int64   `json:"allowed"`
	Wall    float64 `json:"us"`  // microseconds in all
	CPU     float64 `json:"cpu"` // microseconds in all
}

// An asker asks whether a user may go on.
type asker func(ctx context.Context, user string) (allowed bool, err error)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, way string, where ...string) error {
	ask, err := open(ctx, way, where)
	if err != nil {
		return err
	}
	switch os.Getenv("ONLY") {
	case "start":
		return nil
	case "call":
		return first(ctx, ask)
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var j job
		if err := in.Decode(&j); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		done, err := j.ask(ctx, ask)
		if err != nil {
			return err
		}
		if err := out.Encode(done); err != nil {
			return err
		}
	}
}

// first asks once, for a user of its own.
func first(ctx context.Context, ask asker) error {
	allowed, err := ask(ctx, fmt.Sprintf("first-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err == nil && !allowed {
		err = errors.New("a new user is refused")
	}
	return err
}

// open makes the client of a way.
func open(ctx context.Context, way string, where []string) (asker, error) {
	if way == "limiter" {
		return local(ctx, where[0], where[1])
	}
	var options client.Options
	switch address := where[0]; way {
	case "sdk":
		return bare(ctx, address)
	case "invoke":
		if err := os.Setenv("AWS_ENDPOINT_URL_LAMBDA", address); err != nil {
			return nil, err
		}
		options.Activities = activities.All
	case "url":
		options.Activities, options.URLs = activities.All, map[string]string{"posts-guard": address + "/posts-guard"}
	case "agent":
		options.Agent = address
	default:
		return nil, fmt.Errorf("there is no way %q", way)
	}
	return asking(ctx, "create_post", options)
}

// asking returns an asker with a client.
func asking(ctx context.Context, activity string, options client.Options) (asker, error) {
	g, err := client.New(ctx, options)
	return func(ctx context.Context, user string) (bool, error) {
		d, err := g.Check(ctx, activity, client.Request{UserID: user})
		return d.Reason == guards.OK, err // an outage has another reason
	}, err
}

// local returns an asker that decides in this process. Log and metrics are written, and thrown
// away.
func local(ctx context.Context, endpoint, table string) (asker, error) {
	if err := os.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	l, err := limiter.New(ctx, page, limiter.Options{Table: table, Log: slog.New(slog.NewJSONHandler(null, nil)), Output: null})
	if err != nil {
		return nil, err
	}
	return asking(ctx, "act", client.Options{Local: l})
}

// bare returns an asker that only invokes the function with the SDK's client, and reads one field.
func bare(ctx context.Context, address string) (asker, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	sdk := lambda.NewFromConfig(cfg, func(o *lambda.Options) { o.BaseEndpoint = &address })
	return func(ctx context.Context, user string) (bool, error) {
		payload, err := json.Marshal(map[string]string{"userId": user, "activity": "create_post"})
		if err != nil {
			return false, err
		}
		out, err := sdk.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("posts-guard"), Payload: payload})
		if err != nil {
			return false, err
		}
		var answer struct{ Reason guards.Reason }
		err = json.Unmarshal(out.Payload, &answer)
		return answer.Reason == guards.OK, err
	}, nil
}

// ask asks once for each user, with several callers at the same time.
func (j job) ask(ctx context.Context, ask asker) (outcome, error) {
	var next, allowed atomic.Int64
	var wg sync.WaitGroup
	failed := make([]error, j.Callers)
	began, before := time.Now(), cputime.Own()
	for i := range failed {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(j.Users); n = next.Add(1) {
				ok, err := ask(ctx, fmt.Sprintf("%s%0*d", j.Prefix, 36-len(j.Prefix), n))
				switch {
				case err != nil:
					failed[i] = err
					return
				case ok:
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return outcome{allowed.Load(), float64(time.Since(began).Microseconds()), float64((cputime.Own() - before).Microseconds())}, errors.Join(failed...)
}
