package command

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/operating.md lists the actions that a role needs for each command. No
// command sends any other request.
func TestCommandsNeedOnlyTheListedActions(t *testing.T) {
	p := ofApp(t)
	proxy := p.through()
	document := source(t, "docs/operating.md")
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| `guards ([^`]+)`[^|]* \\| (`[^|]+) \\|$").FindAllStringSubmatch(document, -1)
	if len(rows) != 6 {
		t.Fatalf("%d commands in the document, want 6", len(rows))
	}
	for sentence, commands := range map[string][]string{
		"To change limits, you need `dynamodb:GetItem`, `UpdateItem` and `Query` on the table.": {
			"limits set create_post 20/1m", "limits diff", "limits history", "limits --live", "limits unset create_post", "revoke --user u1",
		},
		"The estimate comes from `dynamodb:DescribeTable`, whose figures DynamoDB updates every six hours. " +
			"You also need `dynamodb:Scan`, and `dynamodb:GetItem` for the live limits.": {"top --yes"},
	} {
		if !strings.Contains(strings.Join(strings.Fields(document), " "), sentence) {
			t.Errorf("docs/operating.md does not say %q", sentence)
		}
		listed := regexp.MustCompile("`(?:dynamodb:)?([^`]+)`").FindAllStringSubmatch(sentence, -1)
		for _, command := range commands {
			row := []string{"", command, ""}
			for _, action := range listed {
				row[2] += ", " + action[1]
			}
			rows = append(rows, row)
		}
	}
	actions := map[string]string{"BatchExecuteStatement": "PartiQLDelete", "TransactWriteItems": "UpdateItem"} // two updates
	for _, row := range rows {
		command, listed := row[1], strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
		p.does("check create_post --user u1 --store dynamodb")
		if strings.HasPrefix(command, "release") {
			p.does("revoke --user u1", "check pin --user u1 --store dynamodb") // the grant of the row before: the check would count nothing
		}
		p.does("grant --user u1 --role admin --until 1d --reason r")
		proxy.ResetCounts()
		if slices.Contains([]string{"reset", "release", "erase"}, strings.Fields(command)[0]) {
			command += " --yes"
		}
		p.does(command)
		if strings.HasPrefix(command, "cleanup") {
			p.does("cleanup --yes")
		}
		for op := range proxy.Counts() {
			if action, ok := actions[op]; ok {
				op = action
			}
			if !slices.Contains(listed, op) {
				t.Errorf("guards %s sends %s, but the document lists %v", command, op, listed)
			}
		}
	}
}
