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
	var kept []string
	resource, described := "", false
	for line := range strings.SplitSeq(template, "\n") {
		switch {
		case line == "  AWS::ServerlessRepo::Application:":
			line += "\n    SemanticVersion: " + version
			described = true
		case strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "):
			resource = strings.Trim(line, " :")
		case line == "    Type: AWS::Serverless::Function":
			functions = append(functions, folder(resource))
		case line == "    CodeUri: .", line == "      BuildMethod: makefile":
			continue
		case line == "    Properties:" && len(functions) > 0 && functions[len(functions)-1] == folder(resource):
			line += "\n      CodeUri: functions/" + folder(resource) + ".zip"
		}
		kept = append(kept, line)
	}
	if len(functions) == 0 || !described {
		return "", nil, errors.New("it has no functions, or no metadata of the Serverless Application Repository")
	}
	return strings.Join(kept, "\n"), functions, nil
}

var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// folder returns the folder of a function: posts-guard for PostsGuardFunction.
func folder(resource string) string {
	name := strings.TrimSuffix(resource, "Function")
	return strings.ToLower(boundary.ReplaceAllString(name, "$1-$2"))
}
