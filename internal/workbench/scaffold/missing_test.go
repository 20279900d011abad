package scaffold

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	app "github.com/cric-talk/guards/limits"
)

const root = "../../.."

func template(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + templateFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func missing(t *testing.T, l layout) []string {
	t.Helper()
	found, err := Missing(strings.Join(l, ""), app.All)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// some are the guards at the ends of the lists, and one between them.
var some = limits.Guards{app.Posts, app.Chat, app.Jobs}

var sentence = regexp.MustCompile(`^template\.yaml:(\d+): (.*)$`)

// cut returns the template without the lines from one index to another. The
// first line defines what these lines may have defined for others.
func cut(l layout, from, to int) layout {
	rest := slices.Delete(slices.Clone(l), from, to)
	rest[0] = `Defined: {a: &guard {BuildMethod: makefile}, b: &counts [{Statement: [{Effect: Allow, Action: ` +
		`["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:DeleteItem"], Resource: Table.Arn}]}]}` + "\n"
	return rest
}

// Each piece of each guard is removed. The only sentence names it, and the
// template is complete again once the piece is below the line of the sentence.
func TestMissingNamesThePlaceOfEachPiece(t *testing.T) {
	whole := layoutOf(template(t))
	for _, g := range some {
		for _, p := range slices.Concat(pieces(g)...) {
			t.Run(p.id, func(t *testing.T) {
				rest := cut(whole, whole.find(p.id), whole.end(p.id))
				line := only(t, missing(t, rest), fmt.Sprintf("%s has no %s: add %s below this line, as ", g.Name, p.what, p.id))
				rest.insert(line, "  "+p.id+":\n"+p.text)
				if found := missing(t, rest); len(found) > 0 {
					t.Errorf("after adding it below line %d, Missing finds %q", line, found)
				}
			})
		}
	}
}

func TestMissingNamesThePlaceOfEachLine(t *testing.T) {
	whole := layoutOf(template(t))
	for _, g := range some {
		for what, text := range map[string]string{
			"the dashboard has no line for " + g.Name + ": add [": dashboardLine(g.Name),
			"InvokePolicy does not allow backends lambda:":        backendLine(g.Name),
		} {
			at := whole.last(text)
			found := missing(t, cut(whole, at, at+1))
			if len(found) == 0 {
				t.Fatalf("nothing is found without %s", text)
			}
			for _, f := range found {
				only(t, []string{f}, what)
			}
		}
	}
}

// only checks that there is one sentence, which begins with a text, and returns
// its line.
func only(t *testing.T, found []string, want string) (line int) {
	t.Helper()
	if len(found) != 1 {
		t.Fatalf("found %q, want one sentence", found)
	}
	match := sentence.FindStringSubmatch(found[0])
	if match == nil || !strings.HasPrefix(match[2], want) {
		t.Fatalf("found %q, want %q", found[0], want)
	}
	line, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// Each row replaces one text of the template.
func TestMissingFindsWhatBelongsToAnotherGuard(t *testing.T) {
	for _, tt := range []struct{ old, with, want string }{
		{"${NamePrefix}pins-guard", "${NamePrefix}pin-guard", "the function of pins-guard has the Properties.FunctionName ${NamePrefix}pin-guard: write ${NamePrefix}pins-guard"},
		{"TargetFunctionArn: !Ref PinsGuardFunction", "TargetFunctionArn: !Ref ChatGuardFunction", "the URL of pins-guard has the Properties.TargetFunctionArn ChatGuardFunction: write PinsGuardFunction"},
		{"TargetFunctionArn: !Ref PinsGuardFunction, AuthType: AWS_IAM", "TargetFunctionArn: !Ref PinsGuardFunction, AuthType: NONE", "the URL of pins-guard has the Properties.AuthType NONE: write AWS_IAM"},
		{"MetricName: Throttles, Dimensions: [{Name: FunctionName, Value: !Ref PinsGuardFunction}]", "MetricName: Throttles", "the alarm for throttles of pins-guard has the Properties.Dimensions.0.Name (none): write FunctionName"},
		{"    Value: !GetAtt PinsGuardFunction.Arn", "    Value: !GetAtt ChatGuardFunction.Arn", "the output of pins-guard has the Value ChatGuardFunction.Arn: write PinsGuardFunction.Arn"},
		{"Description: Limits how many pins one account makes in 12 hours.\n      Policies: *counts", "Description: Pins.", "pins-guard has no policy: add the line Policies: *counts below this line"},
		{"Action: [dynamodb:UpdateItem, dynamodb:GetItem] # a reservoir", "Action: [dynamodb:UpdateItem] # a reservoir", "the policy of jobs-guard does not allow dynamodb:GetItem on the table: add this action"},
	} {
		text := strings.Replace(template(t), tt.old, tt.with, 1)
		found, err := Missing(text, app.All)
		if err != nil || len(found) == 0 || !strings.HasSuffix(found[0], ": "+tt.want) {
			t.Errorf("with %s, Missing finds %q, %v, want %s", tt.with, found, err, tt.want)
		}
	}
	if found, err := Missing("Resources: {", app.All); err == nil {
		t.Errorf("a template that is no YAML: %q", found)
	}
}
