// Command probe is a Lambda function for tests. It does what its event tells it, such
// as fail or exit.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

type event struct {
	Do string `json:"do"`
}

type seen struct {
	Env   []string `json:"env"`
	Args  int      `json:"args"`
	Dir   string   `json:"dir"`
	Calls int      `json:"calls"`
}

type probeError struct{ message string }

func (e probeError) Error() string { return e.message }

var calls int

func handle(_ context.Context, e event) (seen, error) {
	calls++
	switch e.Do {
	case "fail":
		return seen{}, probeError{"as asked"}
	case "panic":
		panic(errors.New("as asked"))
	case "exit":
		os.Exit(7)
	case "sleep":
		time.Sleep(time.Minute)
	}
	dir, err := os.Getwd()
	return seen{Env: os.Environ(), Args: len(os.Args), Dir: dir, Calls: calls}, err
}

func main() { lambda.Start(handle) }
