//go:build unix

// App is an app in Go whose client has a limiter, so that it decides in its own process. It is
// measured beside other libraries: peers_test.go in the folder above describes what it reads and
// prints. Log and metrics are written, and thrown away.
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
	"syscall"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
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

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, endpoint, table string) error {
	g, err := open(ctx, endpoint, table)
	if err != nil {
		return err
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
		done, err := j.ask(ctx, g)
		if err != nil {
			return err
		}
		if err := out.Encode(done); err != nil {
			return err
		}
	}
}

// open returns the client. The SDK reads its configuration from variables, as in any app.
func open(ctx context.Context, endpoint, table string) (*client.Guards, error) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	l, err := limiter.New(ctx, page, limiter.Options{Table: table, Log: slog.New(slog.NewJSONHandler(null, nil)), Output: null})
	if err != nil {
		return nil, err
	}
	return client.New(ctx, client.Options{Local: l})
}

// ask asks once for each user, with several callers at the same time.
func (j job) ask(ctx context.Context, g *client.Guards) (outcome, error) {
	var next, allowed atomic.Int64
	var wg sync.WaitGroup
	failed := make([]error, j.Callers)
	began, before := time.Now(), used()
	for i := range failed {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(j.Users); n = next.Add(1) {
				d, err := g.Check(ctx, "act", client.Request{UserID: fmt.Sprintf("%s%0*d", j.Prefix, 36-len(j.Prefix), n)})
				switch {
				case err != nil:
					failed[i] = err
					return
				case d.Allowed:
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return outcome{allowed.Load(), float64(time.Since(began).Microseconds()), float64((used() - before).Microseconds())}, errors.Join(failed...)
}

// used returns the CPU time that this process has used.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it fails only for a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
