package release

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// epoch is the time of a function's files. It is not the commit's time, so that
// a commit that does not change a function does not change its archive, and a
// deployment leaves the function alone.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// aws packs the functions and the template that deploys them.
func (r *Release) aws() error {
	files, err := r.read(append([]string{"template.yaml"}, documents...)...)
	if err != nil {
		return err
	}
	template, functions, err := packaged(string(files[0].content), r.version)
	if err != nil {
		return fmt.Errorf("template.yaml: %w", err)
	}
	files[0].content = []byte(template)
	var programs []*debug.BuildInfo
	for _, name := range functions {
		archive, info, err := r.function(name)
		if err != nil {
			return fmt.Errorf("the function %s: %w", name, err)
		}
		files = append(files, file{name: "functions/" + name + ".zip", content: archive})
		programs = append(programs, info)
	}
	content, err := zipped(files, r.date)
	if err != nil {
		return err
	}
	return r.add(fmt.Sprintf("guards_%s_aws_arm64.zip", r.version), content, programs...)
}

// function packs the program of one function as Lambda wants it.
func (r *Release) function(name string) ([]byte, *debug.BuildInfo, error) {
	built := filepath.Join(r.Functions, name, "bootstrap")
	info, err := buildinfo.ReadFile(built)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range info.Settings {
		if s.Key == "GOARCH" && s.Value != "arm64" {
			return nil, nil, fmt.Errorf("%s is built for %s, but the template says arm64", built, s.Value)
		}
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return nil, nil, err
	}
	archive, err := zipped([]file{{name: "bootstrap", program: true, content: content}}, epoch)
	return archive, info, err
}

// packaged returns the template without what builds the functions, and their
// names. Each function names its archive instead, which sam deploy uploads.
func packaged(template, version string) (text string, functions []string, err error) {
	lines := strings.Split(template, "\n")
	var kept []string
	resource, described := "", false
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "):
			resource = strings.Trim(line, " :")
		case line == "    Type: AWS::Serverless::Function":
			functions = append(functions, folder(resource))
		case line == "    CodeUri: .", line == "      BuildMethod: makefile":
			continue
		case line == "    Metadata:" && lines[i+1] == "      BuildMethod: makefile" && !strings.HasPrefix(lines[i+2], "      "):
			continue // nothing else is in it
		case line == "    Properties:" && len(functions) > 0 && functions[len(functions)-1] == folder(resource):
			line += "\n      CodeUri: functions/" + folder(resource) + ".zip"
		case line == "Parameters:":
			line = fmt.Sprintf(repository, version) + "\n" + line
			described = true
		}
		kept = append(kept, line)
	}
	if len(functions) == 0 || !described {
		return "", nil, errors.New("it has no functions or no parameters")
	}
	return strings.Join(kept, "\n"), functions, nil
}

var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// folder returns the folder of a function: posts-guard for PostsGuardFunction.
func folder(resource string) string {
	name := strings.TrimSuffix(resource, "Function")
	return strings.ToLower(boundary.ReplaceAllString(name, "$1-$2"))
}

// repository is what the Serverless Application Repository shows.
const repository = `Metadata:
  AWS::ServerlessRepo::Application:
    Name: guards
    Description: Exact rate limits for the users of an app. One Lambda function for each kind of write, counted in DynamoDB.
    Author: cric-talk
    SpdxLicenseId: Apache-2.0
    LicenseUrl: LICENSE
    ReadmeUrl: README.md
    Labels: [rate-limit, throttling, dynamodb]
    HomePageUrl: https://github.com/cric-talk/guards
    SourceCodeUrl: https://github.com/cric-talk/guards
    SemanticVersion: %s
`
