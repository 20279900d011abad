package command

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/strictjson"
)

// zones lists the names of all time zones, which Go can look up but not list.
//
//go:embed zones.txt
var zones string

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
	if e, ok := errors.AsType[*policy.ZoneError](err); ok {
		names := strings.Fields(zones)
		if i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(strings.ToLower(name), "/"+strings.ToLower(e.Zone)) }); i >= 0 {
			return "did you mean " + names[i] + "?"
		}
		if meant, ok := nearest(e.Zone, names); ok {
			return "did you mean " + meant + "?"
		}
	}
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		command := "guards"
		if node := e.Context.Selected(); node != nil {
			command = node.FullPath()
		}
		return "see " + command + " --help"
	}
	if e, ok := errors.AsType[*live.DocumentError](err); ok {
		return strictjson.Problem(e.Cause) + ". guards limits repair keeps what can be read" // it can quote a user id, so no log has it
	}
	if e, ok := errors.AsType[*input.Unavailable](err); ok && e.Cause != nil {
		return e.Cause.Error() // hidden from a function's callers, but useful to the person at this terminal
	}
	return ""
}

// quoted adds advice to an error about the command line: if some words of args are one limit,
// the person forgot to quote it.
func quoted(args []string, err error) error {
	if _, parse := errors.AsType[*kong.ParseError](err); !parse && !errors.Is(err, errWords) {
		return err
	}
	limit := unquoted(args)
	if limit == "" {
		return err
	}
	return hint{err, "quote the limit, because it has a space: " + strconv.Quote(limit)}
}

// unquoted returns the limit that most words of args are together, such as log 100/12h. It
// is empty if no two words are one.
func unquoted(args []string) string {
	for n := len(args); n > 1; n-- {
		for at := range len(args) - n + 1 {
			words := slices.Clone(args[at : at+n])
			if _, limit, ok := strings.Cut(words[0], "="); ok { // premium=log 10/1h
				words[0] = limit
			}
			if text := strings.Join(words, " "); text == strings.TrimSpace(text) {
				if _, err := policy.Parse(text); err == nil {
					return text
				}
			}
		}
	}
	return ""
}

// explain names the address if nothing answers there, and the table if it does
// not exist. Functions never show them.
func (f *tableFlags) explain(err error) error {
	if _, ok := errors.AsType[hint](err); ok {
		return err
	}
	if e, ok := errors.AsType[*unreached](err); ok {
		advice := "choose another address with --endpoint or AWS_ENDPOINT_URL_DYNAMODB, or another region with --region"
		return hint{&input.Unavailable{What: e.Error()}, advice}
	}
	api, _ := errors.AsType[smithy.APIError](err)
	cause := f.reach.cause()
	switch {
	case api == nil && cause != "" && errors.Is(err, context.DeadlineExceeded): // the SDK tried until the end
		what := fmt.Sprintf("the table %s failed for %s: %s", f.opened.Table, wait(patience), cause)
		return hint{&input.Unavailable{What: what, Cause: err}, "if it is throttled, try again when less goes on, or see the alarms of the stack"}
	case api == nil:
		return err
	case strings.HasPrefix(api.ErrorCode(), "ExpiredToken"):
		return hint{&input.Unavailable{What: "the AWS credentials have expired"}, "log in again, for example with aws sso login"}
	case api.ErrorCode() != "ResourceNotFoundException":
		return err
	}
	place := "in " + f.opened.Region
	if f.address != "" {
		place = "at " + f.address
	}
	return hint{
		error:  &input.Unavailable{What: fmt.Sprintf("the table %s does not exist %s", f.opened.Table, place)},
		advice: "choose another table with --table or --region, create it with guards serve --store dynamodb --create-table" + f.flags() + ", or deploy the stack",
	}
}

// flags returns the table's flags as they were given, each after a space.
func (f *tableFlags) flags() (given string) {
	for _, flag := range []struct{ name, value string }{{"--table", f.Table}, {"--endpoint", f.Endpoint}, {"--region", f.Region}} {
		if flag.value != "" {
			given += " " + flag.name + " " + flag.value
		}
	}
	return given
}

// known returns nil if a name is one of names. Otherwise it returns an error
// that suggests a name, and advice that mentions --force. Kind describes
// the names, such as "tier of create_post".
func known(flag, name string, names []string, kind string) error {
	if err := unknown(flag, name, names, kind); err != nil {
		return hint{err, "give --force to use it anyway"}
	}
	return nil
}

// unknown is known for names that --force can't override: it gives no advice.
func unknown(field, name string, names []string, kind string) error {
	if slices.Contains(names, name) {
		return nil
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	problem := fmt.Sprintf("is %s, and there is no %s", input.Show(name), kind)
	if len(names) > 0 {
		problem = fmt.Sprintf("is %s, want a %s: %s", input.Show(name), kind, strings.Join(names, ", "))
		if meant, ok := nearest(strings.ToLower(name), names); ok {
			problem = fmt.Sprintf("is %s, did you mean %q?", input.Show(name), meant)
		}
	}
	return &input.ValidationError{Field: field, Problem: problem}
}

// nearest returns the name that a misspelled one most likely means. It returns
// false if no name is close enough.
func nearest(misspelled string, names []string) (string, bool) {
	if len(names) == 0 {
		return "", false
	}
	best := slices.MinFunc(names, func(a, b string) int { return distance(misspelled, a) - distance(misspelled, b) })
	return best, distance(misspelled, best) <= max(1, len(best)/4)
}

// distance returns how many edits turn a into b. An edit inserts, removes or
// changes one letter, or swaps two neighbours.
func distance(a, b string) int {
	d := make([][]int, len(a)+1) // d[i][j] is the distance of a[:i] and b[:j]
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
