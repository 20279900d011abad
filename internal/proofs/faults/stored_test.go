package faults_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/table"
)

// numbers are the numeric attributes of one limit.
type numbers map[string]int64

// readers return how many actions an item counts for one limit, by the
// attributes that the comments of package policy describe. The clock stands still at now, so
// every action still counts.
var readers = map[string]func(r policy.Rate, n numbers, now int64) int64{
	"fixed": func(_ policy.Rate, n numbers, _ int64) int64 {
		return n["activityCount"] + n["s"]%1_000_000
	},
	"log": func(_ policy.Rate, n numbers, _ int64) int64 { return n.matching(slot, func(int64) int64 { return 1 }) },
	"sliding": func(_ policy.Rate, n numbers, _ int64) int64 {
		return n.matching(period, func(v int64) int64 { return v })
	},
	"bucket": func(_ policy.Rate, n numbers, _ int64) int64 {
		if n["every"] == 0 {
			return 0
		}
		return (n["tat"] - n["since"]) / n["every"]
	},
	"lockout": func(_ policy.Rate, n numbers, _ int64) int64 { return n["n"] },
	"reservoir": func(r policy.Rate, n numbers, now int64) int64 {
		if n["t"] == 0 {
			return 0
		}
		return (n["t"]/1_000_000/r.Window.Milliseconds()-now/r.Window.Milliseconds())*r.Limit + n["t"]%1_000_000
	},
}

var (
	slot   = regexp.MustCompile(`^[a-j][0-9]$`)
	period = regexp.MustCompile(`^c[0-9]+$`)
)

// matching adds up a value of each attribute whose name matches.
func (n numbers) matching(name *regexp.Regexp, value func(int64) int64) (sum int64) {
	for attr, v := range n {
		if name.MatchString(attr) {
			sum += value(v)
		}
	}
	return sum
}

// look reads the item of a user. Without an item, the counts are empty.
func look(ctx context.Context, table *table.DynamoDB, user string, p policy.Policy, now int64) (s stored, err error) {
	items, err := table.User(ctx, user)
	if err == nil && len(items) > 1 {
		err = fmt.Errorf("the user has %d items, want one", len(items))
	}
	for _, item := range items {
		for _, set := range item.IDs {
			for _, m := range set.Elements {
				if m.Note == 0 { // else it stands beside its id
					s.ids++
				}
			}
		}
		for _, r := range p.Rates() {
			s.counts = append(s.counts, readers[r.Kind](r, numbersOf(item.State, r.Name), now)/max(1, r.Cost))
		}
	}
	return s, err
}

// numbersOf returns the attributes of the limit with this name.
func numbersOf(state policy.State, name string) numbers {
	prefix := ""
	if name != "" {
		prefix = name + "_"
	}
	n := numbers{}
	for _, a := range state {
		if mine, ok := strings.CutPrefix(a.Name, prefix); ok {
			n[mine] = a.Value
		}
	}
	return n
}
