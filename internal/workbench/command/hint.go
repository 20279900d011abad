package command

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
)

// A hint is an error with advice, which is printed on a line of its own.
type hint struct {
	error
	advice string
}

func (h hint) Unwrap() error { return h.error }

// adviceOn returns advice for the person who sees err, or an empty text.
func adviceOn(err error) string {
	if h, ok := errors.AsType[hint](err); ok {
		return h.advice
	}
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		command := "guards"
		if node := e.Context.Selected(); node != nil {
			command = node.FullPath()
		}
		return "see " + command + " --help"
	}
	if e, ok := errors.AsType[*live.DocumentError](err); ok {
		return e.Cause.Error() // names the place; it can quote a user id, so no log has it
	}
	if e, ok := errors.AsType[*input.Unavailable](err); ok && e.Cause != nil {
		return e.Cause.Error() // hidden from a function's callers, but useful to the person at this terminal
	}
	return ""
}

// explain lets the selected command replace its error with a more helpful one.
func explain(c *kong.Context, err error) error {
	if e, ok := reflect.TypeAssert[interface{ explain(error) error }](c.Selected().Target.Addr()); ok {
		return e.explain(err)
	}
	return err
}

// explain names the address if nothing answers there, and the table if it does
// not exist. Functions never show them.
func (f *tableFlags) explain(err error) error {
	if _, ok := errors.AsType[hint](err); ok {
		return err
	}
	if e, ok := errors.AsType[*unreached](err); ok {
		return hint{
			error:  &input.Unavailable{What: e.Error()},
			advice: "choose another address with --endpoint or AWS_ENDPOINT_URL_DYNAMODB, or another region with --region",
		}
	}
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "ResourceNotFoundException" {
		return err
	}
	place := "in " + f.region
	if f.address != "" {
		place = "at " + f.address
	}
	return hint{
		error:  &input.Unavailable{What: fmt.Sprintf("the table %s does not exist %s", f.table, place)},
		advice: "choose another table with --table or --region, create it with guards serve --store dynamodb --create-table" + f.flags() + ", or deploy the stack",
	}
}

// flags returns the flags that choose the table as they were given, each after a
// space.
func (f *tableFlags) flags() (given string) {
	for _, flag := range []struct{ name, value string }{{"--table", f.Table}, {"--endpoint", f.Endpoint}, {"--region", f.Region}} {
		if flag.value != "" {
			given += " " + flag.name + " " + flag.value
		}
	}
	return given
}
