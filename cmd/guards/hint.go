package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/input"
)

// A hint is an error, and what to do about it in a line of its own.
type hint struct {
	error
	advice string
}

func (h hint) Unwrap() error { return h.error }

// adviceOn is what may help the person who sees err; empty: nothing is known.
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
	if e, ok := errors.AsType[*input.Unavailable](err); ok && e.Cause != nil {
		return e.Cause.Error() // callers must not see it; a person who asked here may know what it means
	}
	return ""
}

// explain has a command say what it knows of its error.
func explain(c *kong.Context, err error) error {
	if e, ok := reflect.TypeAssert[interface{ explain(error) error }](c.Selected().Target.Addr()); ok {
		return e.explain(err)
	}
	return err
}

// explain names the table that does not exist: functions keep names to
// themselves.
func (f *tableFlags) explain(err error) error {
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		return err
	}
	return hint{
		error:  &input.Unavailable{What: fmt.Sprintf("the table %s does not exist %s", f.Table, f.place)},
		advice: "name another by --table or --region, make it by guards serve --store dynamodb --create-table, or deploy the stack",
	}
}

// nearest is the one of names that was most likely meant by a misspelt one.
func nearest(misspelt string, names []string) (string, bool) {
	best := slices.MinFunc(names, func(a, b string) int { return distance(misspelt, a) - distance(misspelt, b) })
	return best, distance(misspelt, best) <= max(1, len(best)/4)
}

// distance is how many letters have to be put in, left out, changed or swapped
// with their neighbour to make b of a.
func distance(a, b string) int {
	d := make([][]int, len(a)+1) // of a[:i] and b[:j]
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], 1+d[i-2][j-2])
			}
		}
	}
	return d[len(a)][len(b)]
}
