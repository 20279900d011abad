package rules_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

const module = "github.com/cric-talk/guards/"

// order lists the packages from top to bottom. A package may import only packages below its own line. A name that ends in
// "/..." stands for all packages under that folder. The packages of a wing may import each other; the packages of any
// other such line must not. The first line that fits a package is its own.
var order = []string{
	"tools/...",
	"internal/endtoend/...",
	"internal/proofs/...",
	"functions/...",
	"cmd/...",
	"examples/...",
	"schema/...",
	"schema",
	"activities", // this app's list, which the client must not know
	"client/httpguard",
	"guardstest",
	"internal/testkit/cricket",
	"limits", // this app's page, which the product must not know
	"limiter",
	"agent",
	"function/jobs",
	"function",
	"command",
	"internal/workbench/...",
	"client", // the command makes the same keys of addresses and accounts
	"internal/testkit/...",
	"internal/policy/policytest",
	"internal/ratelimit/storetest",
	"internal/testkit",
	"internal/lambdafn/jobs",
	"internal/lambdafn",
	"internal/agentd",
	"internal/wiring",
	"internal/delayed/sqsqueue",
	"internal/delayed",
	"internal/cleanup",
	"internal/liveedit/dynamoedit",
	"internal/liveedit", // operators' and cleanup's work, which guards must not know
	"internal/guard",
	"internal/live/dynamolive",
	"internal/live",
	"internal/input",
	"internal/metrics",
	"internal/table",
	"internal/ratelimit/dynamostore",
	"internal/ratelimit/dynamostore/dynamohttp",
	"internal/ratelimit/memstore",
	"internal/ratelimit",
	"internal/crash",
	"internal/pagefile",
	"internal/strictjson",
	"internal/retry",
	"internal/limits",
	".", // the root: the words of a page of limits
	"internal/policy",
}

// wings are the four wings of internal, and tools: no function links them. Packages of one wing may import each other.
var wings = []string{"internal/endtoend/", "internal/proofs/", "tools/", "internal/workbench/", "internal/testkit/"}

// wing returns the wing of a package, or nothing for the product.
func wing(name string) string {
	i := slices.IndexFunc(wings, func(wing string) bool { return strings.HasPrefix(name+"/", wing) })
	if i < 0 {
		return ""
	}
	return wings[i]
}

func TestImportsRunInOneDirection(t *testing.T) {
	for _, p := range packages(t) {
		importer, _ := local(p.ImportPath)
		from := line(importer)
		if from < 0 {
			t.Errorf("%s has no line in the order of this test", importer)
		}
		for _, imported := range p.Imports {
			name, ours := local(imported)
			if ours && forApps(importer) && !forApps(name) && name != "." {
				t.Errorf("%s imports %s, but apps import %[1]s and must get nothing else of this project", importer, name)
			}
			if same := wing(name) != "" && wing(name) == wing(importer); ours && line(name) <= from && !same {
				t.Errorf("%s imports %s, which is not below it in the order", importer, name)
			}
		}
	}
}

// local returns the folder of a package of this module. It returns false for any other package.
func local(path string) (folder string, ours bool) {
	if path+"/" == module {
		return ".", true
	}
	return strings.CutPrefix(path, module)
}

// forApps reports whether apps import a package.
func forApps(name string) bool { return name == "client" || strings.HasPrefix(name, "client/") }

// line returns the index in order of a package, or -1 if it has none.
func line(name string) int {
	return slices.IndexFunc(order, func(entry string) bool {
		folder, all := strings.CutSuffix(entry, "...")
		return entry == name || all && strings.HasPrefix(name, folder)
	})
}

// A kind of policy is an unexported type, so no other package can name it. To switch on the Kind of a policy.Rate, or to
// compare it with a text or a constant of package policy, would be the same mistake in disguise. The oracle judges policies
// and shares no code with them, so it has kinds of its own.
func TestOnlyThePolicyPackageAsksForAKind(t *testing.T) {
	asks := regexp.MustCompile("\\.Kind\\s*[!=]=\\s*([\"`]|policy\\.)|switch\\b[^\\n]*\\.Kind\\b[^(\\n]*\\{")
	for name, content := range testkit.Files(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/policy/") || strings.HasPrefix(name, "internal/proofs/oracle/") {
			continue
		}
		if found := asks.Find(content); found != nil {
			t.Errorf("%s asks for a kind of policy: %q. Ask the policy for what you need instead", name, found)
		}
	}
}

// An app that invokes functions links the words and nothing that decides. One that decides itself links no Lambda function.
// No function asks a function. The SQS client makes a binary larger and its cold start longer. A wing is for development:
// commands, servers for tests, proofs. A generic program reads the page of each project, and not that of this repository.
func TestProgramsLinkNothingThatTheyDoNotNeed(t *testing.T) {
	const aws, functions = "github.com/aws/aws-sdk-go-v2/service/", "github.com/aws/aws-lambda-go"
	var development []string
	for _, wing := range wings {
		development = append(development, module+strings.TrimSuffix(wing, "/"))
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		var heavy []string
		switch {
		case name == "client":
			heavy = []string{aws + "dynamodb", functions, "github.com/go-json-experiment/json", "time/tzdata", module + "internal/ratelimit", module + "internal/limits"}
		case name == "limiter", name == "agent":
			heavy = []string{functions, aws + "sqs", aws + "lambda", module + "client", module + "internal/workbench"}
		case strings.HasPrefix(name, "functions/"):
			heavy = slices.Concat(development, []string{module + "client", aws + "lambda"})
		case strings.HasPrefix(name, "cmd/generic/"):
			heavy = slices.Concat(development, []string{module + "limits"})
		}
		if program := strings.HasPrefix(name, "functions/") || strings.HasPrefix(name, "cmd/"); program && path.Base(name) != "delayed-jobs" && path.Base(name) != "jobs-guard" {
			heavy = append(heavy, aws+"sqs")
		}
		for _, linked := range p.Deps {
			if slices.ContainsFunc(heavy, func(not string) bool { return linked == not || strings.HasPrefix(linked, not+"/") }) {
				t.Errorf("%s links %s", name, linked)
			}
		}
	}
}

// goPackage is the part of go list's output that the rules use.
type goPackage struct {
	ImportPath    string
	Imports, Deps []string // of the package itself, without its tests' imports
}

// packages returns the packages of this module, sorted by import path.
func packages(t *testing.T) (all []goPackage) {
	t.Helper()
	out := testkit.Must(exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...").Output())(t)
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p goPackage
		testkit.OK(t, decoder.Decode(&p))
		all = append(all, p)
	}
	return all
}
