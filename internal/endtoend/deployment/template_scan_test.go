package deployment_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The template may skip a check only with a reason. The second part plants a
// public URL and a wildcard, to prove that the scan works.
func TestTemplatePassesTheScannersWithoutUnexplainedSkips(t *testing.T) {
	clean := filepath.Join(t.TempDir(), "transformed.json")
	whole := parse(t, transform(t))
	write(t, clean, whole)
	if found := scan(t, clean); len(found) > 0 {
		t.Errorf("checkov finds %v, want nothing", found)
	}
	run(t, nil, ".cache/venv/bin/cfn-lint", "--include-checks", "I", "--", clean)
	for _, r := range whole["Resources"].(object) {
		skips, _ := at(r, "Metadata.checkov.skip").([]any)
		for _, skip := range skips {
			if len(show(at(skip, "comment"))) < 10 {
				t.Errorf("the template skips %s without a reason", show(at(skip, "id")))
			}
		}
	}

	faulty := filepath.Join(t.TempDir(), "transformed.json")
	at(whole, "Resources.PostsGuardUrl.Properties").(object)["AuthType"] = "NONE"
	policy := at(whole, "Resources.PostsGuardFunctionRole.Properties.Policies").([]any)[0]
	at(policy, "PolicyDocument.Statement").([]any)[0].(object)["Action"] = "*"
	at(policy, "PolicyDocument.Statement").([]any)[0].(object)["Resource"] = "*"
	write(t, faulty, whole)
	found := scan(t, faulty)
	for id, what := range map[string]string{"CKV_AWS_258": "a public URL", "CKV_AWS_111": "a wildcard"} {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, id+" ") }) {
			t.Errorf("checkov does not find %s (%s): %v", what, id, found)
		}
	}
}

// write writes a value to a file as JSON.
func write(t *testing.T, name string, v value) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scan returns what checkov finds in a file: the id of each failed check with its
// resource.
func scan(t *testing.T, name string) (found []string) {
	t.Helper()
	stdout, stderr, err := attempt(t, nil, ".cache/scan/bin/checkov", "--framework", "cloudformation", "--file", name,
		"--output", "json", "--compact", "--quiet", "--soft-fail", "--skip-download")
	var out struct {
		Summary struct {
			ResourceCount int `json:"resource_count"`
			ParsingErrors int `json:"parsing_errors"`
		} `json:"summary"`
		Results struct {
			Failed []struct {
				ID       string `json:"check_id"`
				Resource string `json:"resource"`
			} `json:"failed_checks"`
		} `json:"results"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &out)
	}
	if err != nil || out.Summary.ResourceCount == 0 || out.Summary.ParsingErrors > 0 {
		t.Fatalf("checkov: %v\n%s%s", err, stdout, stderr)
	}
	for _, f := range out.Results.Failed {
		found = append(found, f.ID+" "+f.Resource)
	}
	return found
}
