// Package terraform_test checks the Terraform module with OpenTofu: its variables and outputs against template.yaml, and the values
// that it makes of a stack on the emulator. The provider hashicorp/aws is not there, so the AWS CLI does its work. make terraform
// runs these tests.
package terraform_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/testkit"
)

// A parameter is one of template.yaml.
type parameter struct {
	Type           string   `yaml:"Type"`
	Description    string   `yaml:"Description"`
	Default        any      `yaml:"Default"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	AllowedValues  []any    `yaml:"AllowedValues"`
	MinValue       *float64 `yaml:"MinValue"`
	MaxValue       *float64 `yaml:"MaxValue"`
}

func (p parameter) boolean() bool { return slices.Contains(p.AllowedValues, any("true")) }

// accepts reports whether CloudFormation accepts a value.
func (p parameter) accepts(t *testing.T, value string) bool {
	t.Helper()
	if p.AllowedValues != nil {
		return slices.ContainsFunc(p.AllowedValues, func(v any) bool { return fmt.Sprint(v) == value })
	}
	if p.AllowedPattern != "" {
		return regexp.MustCompile(p.AllowedPattern).MatchString(value)
	}
	number := testkit.Must(strconv.ParseFloat(value, 64))(t)
	return (p.MinValue == nil || number >= *p.MinValue) && (p.MaxValue == nil || number <= *p.MaxValue)
}

// stackTemplate is what these tests read of template.yaml.
type stackTemplate struct {
	Parameters map[string]parameter `yaml:"Parameters"`
	Outputs    map[string]any       `yaml:"Outputs"`
	Resources  map[string]struct {
		Type       string         `yaml:"Type"`
		Properties map[string]any `yaml:"Properties"`
	} `yaml:"Resources"`
}

func template(t *testing.T) (parsed stackTemplate) {
	t.Helper()
	testkit.OK(t, yaml.Unmarshal(testkit.Must(os.ReadFile(filepath.Join(repository(t), "template.yaml")))(t), &parsed))
	return parsed
}

// functionOutputs returns the outputs of the template with the ARN of a function, in order.
func functionOutputs(t *testing.T) (names []string) {
	t.Helper()
	for id, r := range template(t).Resources {
		if r.Type == "AWS::Serverless::Function" {
			names = append(names, strings.TrimSuffix(id, "Function")+"Arn")
		}
	}
	slices.Sort(names)
	return names
}

var boundary = regexp.MustCompile(`[a-z0-9][A-Z]`)

// snake returns a name in Terraform's style.
func snake(name string) string {
	return strings.ToLower(boundary.ReplaceAllStringFunc(name, func(at string) string { return at[:1] + "_" + at[1:] }))
}

func repository(t *testing.T) string {
	t.Helper()
	return testkit.Must(testkit.Root())(t)
}

func moduleFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(repository(t), "deploy", "terraform")
}

// document returns the first block of the module's README that begins with a line.
func document(t *testing.T, begin string) string {
	t.Helper()
	content := testkit.Must(os.ReadFile(filepath.Join(moduleFolder(t), "README.md")))(t)
	_, block, found := strings.Cut(string(content), begin)
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatalf("the module's README has no block %q", begin)
	}
	return block
}

func copyFile(t *testing.T, file, folder string) {
	t.Helper()
	testkit.OK(t, os.WriteFile(filepath.Join(folder, filepath.Base(file)), testkit.Must(os.ReadFile(file))(t), 0o600))
}

// tofu runs OpenTofu in a folder and returns what it prints. If it fails, the test ends.
func tofu(t *testing.T, folder string, args ...string) string {
	t.Helper()
	out, err := try(t, folder, args...)
	if err != nil {
		t.Fatalf("tofu %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// try is like tofu, but returns an error if tofu fails.
func try(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("TOFU")
	if program == "" {
		t.Skip("make terraform runs this test")
	}
	cmd := command(t, program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "TF_CLI_ARGS=-no-color", "TF_CLI_CONFIG_FILE="+os.DevNull)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs another program in the repository and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := command(t, name, args...)
	cmd.Dir = repository(t)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
