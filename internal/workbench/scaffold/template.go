package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// A piece is one resource or output that each guard has in the template.
type piece struct {
	what string // such as "URL"
	id   string // its name in the template
	text string // as guards new writes it, from the line of its name on

	// want holds values that the piece must have, by their paths. A value with
	// !Ref, !Sub or !GetAtt is the string after the tag.
	want map[string]string
}

// pieces returns what a guard needs in the template. The pieces of one group
// follow each other.
func pieces(g limits.Guard) [][]piece {
	id := LogicalID(g.Name)
	function := id + "Function"
	description := "Limits how often one user does something else."
	if len(g.Activities) > 0 {
		description = "Limits how often one user does " + g.Activities[0].Name + "."
	}
	permission := func(id, what, action, by string) piece {
		name, value, _ := strings.Cut(by, ": ")
		return piece{what, id, "    Type: AWS::Lambda::Permission\n    Condition: OpensUrls\n" +
			"    Properties: {FunctionName: !Ref " + function + ", Action: " + action + ", Principal: !Ref UrlPrincipal, " + by + "}\n",
			map[string]string{
				"Type": "AWS::Lambda::Permission", "Condition": "OpensUrls", "Properties.FunctionName": function,
				"Properties.Action": action, "Properties.Principal": "UrlPrincipal", "Properties." + name: value,
			}}
	}
	alarm := func(metric, description string) piece {
		return piece{"alarm for " + strings.ToLower(metric), id + metric + "Alarm", "    Type: AWS::CloudWatch::Alarm\n" +
			"    Properties: {<<: *alarm, AlarmDescription: \"" + description + "\", Namespace: AWS/Lambda, MetricName: " + metric +
			", Dimensions: [{Name: FunctionName, Value: !Ref " + function + "}]}\n",
			map[string]string{
				"Type": "AWS::CloudWatch::Alarm", "Properties.Namespace": "AWS/Lambda", "Properties.MetricName": metric,
				"Properties.Statistic":         "Sum", // one of the values that alarms share
				"Properties.Dimensions.0.Name": "FunctionName", "Properties.Dimensions.0.Value": function,
			}}
	}
	return [][]piece{
		{{"function", function, "    Type: AWS::Serverless::Function\n    Metadata: *guard\n    Properties:\n" +
			"      FunctionName: !Sub ${NamePrefix}" + g.Name + "\n      Description: " + description + "\n      Policies: *counts\n",
			map[string]string{
				"Type": "AWS::Serverless::Function", "Metadata.BuildMethod": "makefile", "Properties.FunctionName": "${NamePrefix}" + g.Name,
			}}},
		{
			{"URL", id + "Url", "    Type: AWS::Lambda::Url\n    Condition: OpensUrls\n" +
				"    Properties: {TargetFunctionArn: !Ref " + function + ", AuthType: AWS_IAM}\n",
				map[string]string{
					"Type": "AWS::Lambda::Url", "Condition": "OpensUrls", "Properties.TargetFunctionArn": function, "Properties.AuthType": "AWS_IAM",
				}},
			permission(id+"UrlPermission", "permission to call its URL", "lambda:InvokeFunctionUrl", "FunctionUrlAuthType: AWS_IAM"),
			permission(id+"UrlInvokePermission", "permission to be invoked by its URL", "lambda:InvokeFunction", "InvokedViaFunctionUrl: true"),
		},
		{alarm("Errors", g.Name+" returns errors or crashes."), alarm("Throttles", "Lambda throttles "+g.Name+".")},
		{{"output", id + "Arn", "    Value: !GetAtt " + function + ".Arn\n", map[string]string{"Value": function + ".Arn"}}},
	}
}

// backendLine is a line of the policy for backends.
func backendLine(guard string) string { return "- !GetAtt " + LogicalID(guard) + "Function.Arn" }

// dashboardLine is a line of the dashboard, without the comma that separates it
// from the next one.
func dashboardLine(guard string) string {
	return `["AWS/Lambda", "Duration", "FunctionName", "${` + LogicalID(guard) + `Function}", {"stat": "p99"}]`
}

// A layout is the template as lines. A resource begins with two spaces and its
// name, and ends before the next line with at most two spaces.
type layout []string

func layoutOf(text string) layout { return strings.SplitAfter(text, "\n") }

// find returns the index of the line of a resource or an output, or -1.
func (l layout) find(id string) int {
	return slices.IndexFunc(l, func(line string) bool { return strings.HasPrefix(line, "  "+id+":") })
}

// end returns the index of the line after a resource or an output, without the
// empty lines that follow it.
func (l layout) end(id string) int {
	at := l.find(id) + 1
	for at < len(l) && (strings.HasPrefix(l[at], "   ") || strings.TrimSpace(l[at]) == "") {
		at++
	}
	for strings.TrimSpace(l[at-1]) == "" {
		at--
	}
	return at
}

// last returns the index of the last line with a text, or -1.
func (l layout) last(text string) int {
	for i, line := range slices.Backward(l) {
		if strings.Contains(line, text) {
			return i
		}
	}
	return -1
}

// insert puts a text before a line.
func (l *layout) insert(at int, text string) { *l = slices.Insert(*l, at, text) }

// withTemplate returns the template with all pieces of one more guard. They
// follow those of the guards before it.
func withTemplate(text string, before limits.Guards, g limits.Guard) (string, error) {
	l := layoutOf(text)
	for n, group := range pieces(g) {
		at := -1
		for _, other := range slices.Backward(before) {
			theirs := pieces(other)[n]
			if id := theirs[len(theirs)-1].id; l.find(id) >= 0 {
				at = l.end(id)
				break
			}
		}
		if at < 0 {
			return "", fmt.Errorf("%s has no %s of another guard, so its place is unknown", templateFile, group[0].what)
		}
		var b strings.Builder
		if n == 0 {
			b.WriteString("\n") // functions are apart
		}
		for _, p := range group {
			b.WriteString("  " + p.id + ":\n" + p.text)
		}
		l.insert(at, b.String())
	}
	l = layoutOf(strings.Join(l, "")) // one line for each element again
	if err := l.addLine(before, g, backendLine, ""); err != nil {
		return "", err
	}
	if err := l.addLine(before, g, dashboardLine, ","); err != nil {
		return "", err
	}
	return strings.Join(l, ""), nil
}

// addLine adds a guard's line after the line of the last other guard.
func (l *layout) addLine(before limits.Guards, g limits.Guard, line func(guard string) string, separator string) error {
	for _, other := range slices.Backward(before) {
		at := l.last(line(other.Name))
		if at < 0 {
			continue
		}
		old := (*l)[at]
		indent := old[:len(old)-len(strings.TrimLeft(old, " "))]
		rest := strings.TrimPrefix(strings.TrimSpace(old), line(other.Name)) // a comma, or nothing
		(*l)[at] = indent + line(other.Name) + separator + "\n"
		l.insert(at+1, indent+line(g.Name)+rest+"\n")
		return nil
	}
	return fmt.Errorf("%s has no line such as %s, so its place is unknown", templateFile, line(g.Name))
}
