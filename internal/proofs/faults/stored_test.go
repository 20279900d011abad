package faults_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
)

// numbers are the numeric attributes of one limit.
type numbers map[string]int64

// readers return how many actions an item counts for one limit, by the
// attributes that docs/policies.md describes. The clock stands still at now, so
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
	set    = regexp.MustCompile(`^(ids|i[0-9][0-9])$`)
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

// look reads the item of a user directly from the table. Without an item, the
// counts are empty.
func look(ctx context.Context, table *dynamodb.Client, name, user string, p policy.Policy, now int64) (s stored, err error) {
	page, err := table.Query(ctx, &dynamodb.QueryInput{
		TableName: &name, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("userId = :u"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":u": &types.AttributeValueMemberS{Value: user}},
	})
	if err != nil || len(page.Items) == 0 {
		return s, err
	}
	if len(page.Items) > 1 {
		return s, fmt.Errorf("the user has %d items, want one", len(page.Items))
	}
	item := page.Items[0]
	for attr, value := range item {
		if elements, ok := value.(*types.AttributeValueMemberBS); ok && set.MatchString(attr) {
			for _, e := range elements.Value {
				if len(e) == 6 { // an element of 14 bytes is a note beside an id
					s.ids++
				}
			}
		}
	}
	for _, r := range p.Rates() {
		s.counts = append(s.counts, readers[r.Kind](r, numbersOf(item, r.Name), now)/max(1, r.Cost))
	}
	return s, nil
}

// numbersOf returns the numeric attributes of the limit with this name.
func numbersOf(item map[string]types.AttributeValue, name string) numbers {
	n := numbers{}
	for attr, value := range item {
		number, ok := value.(*types.AttributeValueMemberN)
		if name != "" {
			var mine bool
			attr, mine = strings.CutPrefix(attr, name+"_")
			ok = ok && mine
		}
		if ok {
			n[attr], _ = strconv.ParseInt(number.Value, 10, 64)
		}
	}
	return n
}
