package scaffold

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/testkit"
)

// withTemplate returns a folder with the generated template and an extra file.
func withTemplate(extra string) fstest.MapFS {
	files := folder()
	var b strings.Builder
	for _, part := range documents[0].parts {
		fmt.Fprintf(&b, "%s:\n  # begin generated: %s\n  # end generated: %[2]s\n", section(part), part)
	}
	files[templateFile] = &fstest.MapFile{Data: []byte(b.String())}
	if extra != "" {
		files[extraFile] = &fstest.MapFile{Data: []byte(extra)}
	}
	return files
}

// merged returns the generated template with an extra file, and what generate tells about
// it.
func merged(t *testing.T, extra string) (template string, did []string) {
	t.Helper()
	files := withTemplate(extra)
	_, did, err := withExtra(files, some, true)
	if err != nil {
		t.Fatalf("%v:\n%s", err, extra)
	}
	return after(t, files, some)[templateFile], did
}

// A short tag and its value are one text here: the parser would drop the tag, and in braces
// take AWS::NoValue for a mapping.
var tagged = regexp.MustCompile(`!(Ref|GetAtt) [\w:.]+`)

// values returns the value of a document of YAML.
func values(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	text = tagged.ReplaceAllStringFunc(text, func(s string) string { return "'" + s + "'" })
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return v
}

// combine merges values as the file is documented: maps by key, null removes, all else replaces.
func combine(base, extra map[string]any) map[string]any {
	all := maps.Clone(base)
	for key, v := range extra {
		old, isMap := all[key].(map[string]any)
		more, both := v.(map[string]any)
		switch {
		case v == nil:
			delete(all, key)
		case isMap && both:
			all[key] = combine(old, more)
		default:
			all[key] = v
		}
	}
	return all
}

// sameAsValues compares the merged template with the merged values of both files.
func sameAsValues(t *testing.T, base map[string]any, extra string) {
	t.Helper()
	got, _ := merged(t, extra)
	testkit.Same(t, extra, combine(base, values(t, extra)), values(t, got))
}

// Each row is an extra file, and lines that generate prints.
func TestTheExtraFileIsMerged(t *testing.T) {
	generated, _ := merged(t, "")
	base := values(t, generated)
	for _, tt := range []struct {
		extra string
		did   []string
		parts []string // of the template
	}{
		{"# Nothing yet.\n", nil, nil},
		{"Globals:\n  Function:\n    Tracing: Active # X-Ray\n", []string{"adds Globals.Function.Tracing"}, []string{"\n    Tracing: Active # X-Ray\n", "    # In MB. The CPU"}},
		{"Globals: {Function: {Timeout: 20, Tags: {team: limits}, VpcConfig: {SubnetIds: [!Ref A, !Ref AWS::NoValue]}}}\n", []string{
			"changes Globals.Function.Timeout from 10 to 20", "adds Globals.Function.Tags", "adds Globals.Function.VpcConfig",
		}, []string{"\n    Timeout: 20\n", "\n    Tags: {team: limits}\n", "SubnetIds: [!Ref A, !Ref AWS::NoValue]"}},
		{"Globals:\n    Function:\n        Environment:\n            Variables:\n                # Ours.\n                TEAM: \"a: b\"\n                MODE: null\n", []string{
			"adds Globals.Function.Environment.Variables.TEAM", "removes Globals.Function.Environment.Variables.MODE",
		}, []string{"\n        # Ours.\n        TEAM: \"a: b\"\n"}},
		{"Resources:\n  MapsGuardFunction:\n    Properties:\n      Environment:\n        Variables: {MODE: shadow}\n", []string{
			"adds Resources.MapsGuardFunction.Properties.Environment.Variables.MODE",
		}, []string{"          DELAYED_QUEUE_URL: !Ref DelayedQueue\n          MODE: shadow\n"}},
		{"Resources:\n  PhotosGuardFunction:\n    Metadata:\n      BuildMethod: null\n      Owner: me\n", []string{
			"removes Resources.PhotosGuardFunction.Metadata.BuildMethod", "adds Resources.PhotosGuardFunction.Metadata.Owner",
		}, []string{"\n    Metadata: *guard\n", "\n      Owner: me\n"}}, // the other guard keeps the alias
		{"Resources:\n  PhotosGuardErrorsAlarm:\n    Properties:\n      Threshold: 5\n      OKActions:\n", []string{
			"changes Resources.PhotosGuardErrorsAlarm.Properties.Threshold from 1 to 5", "removes Resources.PhotosGuardErrorsAlarm.Properties.OKActions",
		}, []string{"{<<: *alarm, AlarmDescription: \"Lambda throttles photos-guard.\""}},
		{"Resources:\n  DegradedAlarm: null\n  CleanupDeadLettersAlarm: ~\n  PhotosGuardErrorsAlarm:\n", []string{
			"removes Resources.DegradedAlarm", "removes Resources.CleanupDeadLettersAlarm", "removes Resources.PhotosGuardErrorsAlarm",
		}, []string{"<<: &alarm", "<<: &queue"}},
		{"Resources:\n  DegradedAlarm:\n    Properties:\n      OKActions: null\n", []string{"removes Resources.DegradedAlarm.Properties.OKActions"}, []string{"<<: &alarm"}},
		{"Resources:\n  Table:\n    Properties:\n      KeySchema:\n      - {AttributeName: userId, KeyType: HASH}\n      OnDemandThroughput: {MaxReadRequestUnits: 9}\n", []string{
			"changes Resources.Table.Properties.KeySchema", "changes Resources.Table.Properties.OnDemandThroughput",
		}, []string{"        Enabled: true\n"}},
		{"Resources:\n  # Who is told.\n  Topic:\n    Type: AWS::SNS::Topic\n    Properties:\n      DisplayName: |\n        # no comment\n\n        a: b\n  GuardsDashboard: null\nOutputs:\n  DashboardName: null\n  TopicArn: {Value: !Ref Topic}\n", []string{
			"adds Resources.Topic", "removes Resources.GuardsDashboard", "removes Outputs.DashboardName", "adds Outputs.TopicArn",
		}, []string{"  # Who is told.\n  Topic:\n    Type: AWS::SNS::Topic\n    Properties:\n      DisplayName: |\n        # no comment\n\n        a: b\n"}},
		{"Resources:\n  PhotosGuardFunction:\n    Properties:\n      Environment: {\"Fn::If\": [Caps, {Variables: {A: b}}, !Ref AWS::NoValue]}\n      Policies: []\n", []string{
			"adds Resources.PhotosGuardFunction.Properties.Environment", "changes Resources.PhotosGuardFunction.Properties.Policies",
		}, nil},
		{`{"Globals": {"Function": {"Timeout":20, "Layers": ["a{b", "c}d,\" # e"]}}, # a comment, with "quotes` + "\n" + `  "Conditions": {"Caps": {"Fn::Equals": ["x", "y"]}}` + "\n}\n", []string{
			"changes Globals.Function.Timeout from 10 to 20", "adds Globals.Function.Layers", "changes Conditions.Caps from !Or [!Condition CapsWrites, !Condition CapsReads] to {\"Fn::Equals\": [\"x\", \"y\"]}",
		}, nil},
		{"Globals:\n  Function: {Tags: {Owner: it's, Team: 'the # one'}, # who {\n    Description: \"a, b\"}\n", []string{"adds Globals.Function.Tags", "adds Globals.Function.Description"}, nil},
		{"---\r\nParameters:\r\n  Mode:\r\n    Default: shadow\r\n", []string{"changes Parameters.Mode.Default from enforce to shadow"}, nil},
		{"Globals:\n  Function:\n    Timeout: 10\n", nil, nil}, // as it is
	} {
		got, did := merged(t, tt.extra)
		testkit.Same(t, tt.extra+": what it did", tt.did, did)
		testkit.Contains(t, "the template with "+tt.extra, got, tt.parts...)
		sameAsValues(t, base, tt.extra)
	}
}

// What the file does not name stays as it is, to the letter.
func TestTheExtraFileChangesNothingElse(t *testing.T) {
	base, _ := merged(t, "")
	got, _ := merged(t, "Resources:\n  LogGroup:\n    Properties:\n      KmsKeyId: !GetAtt Key.Arn\n")
	want := strings.Replace(base, "      RetentionInDays: !Ref LogRetentionDays\n", "      RetentionInDays: !Ref LogRetentionDays\n      KmsKeyId: !GetAtt Key.Arn\n", 1)
	testkit.Same(t, "the template", want, got)
}

// Every key of the template can be removed, replaced or extended. Some are tried.
func TestTheExtraFileReachesEachKey(t *testing.T) {
	generated, _ := merged(t, "")
	base := values(t, generated)
	var paths [][]string
	var walk func(m map[string]any, at []string)
	walk = func(m map[string]any, at []string) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			path := append(slices.Clone(at), key)
			if len(at) > 0 && key != "shared" { // the anchor of all functions is there
				paths = append(paths, path)
			}
			if inner, ok := m[key].(map[string]any); ok {
				walk(inner, path)
			}
		}
	}
	walk(base, nil)
	for i, path := range paths {
		if i%testkit.Bound(25, 5) != 0 || strings.HasPrefix(strings.Join(path, "."), "Metadata.shared.") || slices.Equal(path, []string{"Globals", "Function"}) {
			continue
		}
		var extra strings.Builder
		for depth, key := range path {
			extra.WriteString(strings.Repeat("  ", depth) + fmt.Sprintf("%q:\n", key))
		}
		sameAsValues(t, base, strings.TrimSuffix(extra.String(), "\n")+[]string{" null\n", " {Own: [1, 2]}\n", " text # own\n"}[i%3])
	}
}

func TestTheExtraFileIsRefused(t *testing.T) {
	for extra, want := range map[string]string{
		"Resources:\n  CardsGuardFunction:\n    Properties: {Timeout: 9}\n": "Resources.CardsGuardFunction is not generated (any more): delete it, or give it a Type to add one of your own",
		"Resources:\n  CardsGuardFunction: null\n":                          "Resources.CardsGuardFunction is null, but it is not generated (any more), so there is nothing to remove",
		"Outputs:\n  CardsGuardArn: {Description: d}\n":                     "Outputs.CardsGuardArn is not generated (any more): delete it, or give it a Value",
		"Parameters:\n  Speed: {Default: 1}\n":                              "Parameters.Speed is not generated (any more): delete it, or give it a Type",
		"Globals:\n  Function: {Tracing: null}\n":                           "Globals.Function.Tracing is null, but it is not generated",
		"Mappings: {A: {B: {C: d}}}\n":                                      "Mappings is no generated part of template.yaml: write it there, outside the generated lines",
		"Globals:\n":                                                        "Globals has no keys below it",
		"Globals: 1\n":                                                      "Globals has no keys below it",
		"- a\n":                                                             "has no keys such as Globals or Resources",
		"text\n":                                                            "has no keys such as Globals or Resources",
		"a: {\n":                                                            "template.extra.yaml: ",
		"Globals:\n\tFunction: {}\n":                                        "template.extra.yaml: ",
		"Globals: {}\n---\nGlobals: {}\n":                                   "has several documents, want one",
		"Globals:\n  Function: {Tags: *own}\n":                              "is no valid YAML: ",
		"Globals:\n  Function:\n    Timeout: 1\n    Timeout: 2\n":           "Timeout",
	} {
		_, err := Stale(withTemplate(extra), some, true)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", extra, err, want)
		}
	}
	files := withTemplate("Resources:\n  Topic: {Type: AWS::SNS::Topic}\n")
	files[templateFile].Data = append(files[templateFile].Data, "Resources: {Topic: {Type: AWS::SNS::Topic}}\n"...)
	if _, err := Stale(files, some, true); err == nil || !strings.Contains(err.Error(), "template.yaml with template.extra.yaml is no valid YAML") {
		t.Errorf("a resource that template.yaml has by hand: %v", err)
	}
}
