package command

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// numbers are the numbers of a caller for limits with a max, by the names of the limits, as
// --limit gives them. An empty name is the user's only limit.
type numbers map[string]int64

// Decode implements kong.MapperValue.
func (n *numbers) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("NUMBER", &text); err != nil {
		return err
	}
	equals := strings.LastIndex(text, "=") // -1: there is no name
	name, number := text[:max(0, equals)], text[equals+1:]
	value, ok := input.Number(number)
	if !ok {
		err := input.Invalid("the value", input.Show(text), "a whole number from 0 to 1000000, or one for a limit by its name, such as tenant=500")
		if _, wrong := policy.Parse(number); wrong == nil {
			return hint{err, "a limit's text goes to guards limits set, or to guards replay to try it"}
		}
		return err
	}
	if _, twice := (*n)[name]; twice {
		return input.Invalid(input.Show(text), "given beside another number", "one for each limit")
	}
	if *n == nil {
		*n = numbers{}
	}
	(*n)[name] = value
	return nil
}

// check returns an error for a number that no limit of users, or of the subject, takes.
func (n numbers) check(guards limits.Guards, subject string) error {
	var names []string
	for _, a := range each(guards) {
		names = append(names, a.WithMax(subject)...)
	}
	for name := range n {
		if err := unknown("--limit", name, names, "limit with a max"); err != nil && (name != "" || subject != "" || names == nil) {
			return err
		}
	}
	return nil
}

// These explain a max.
const (
	byText  = "max: figures are by each text's own number; a caller can give another, up to max"
	upToMax = "max: a caller can give any number up to max; a live limit with a lower max lowers that for everybody"
)
