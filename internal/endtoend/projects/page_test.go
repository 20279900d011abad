package projects_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// installed builds the program guards, as a person installs it, and returns its file.
func installed(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "guards")
	ours(t).wants(t, 0, "^$", "go build -o "+program+" ./cmd/guards")
	return program
}

// A project whose page is JSON has commands, checks and functions, and nothing in it needs Go.
func TestAProjectWithoutGo(t *testing.T) {
	testkit.Projects.Need(t)
	t.Parallel()
	program := installed(t)
	p := project{filepath.Join(t.TempDir(), "my-guards")}
	ours(t).wants(t, 0, `next: cd .* && guards check upload_photo --user u1 --times 6`, program+" init "+p.dir+" --page json "+photos)

	tools := t.TempDir() // all that the project finds
	for _, name := range []string{"sh", "make", "cp", "rm", "mkdir", "echo"} {
		file, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(file, filepath.Join(tools, name))
		}
		if err != nil {
			t.Skip(err)
		}
	}
	testkit.OK(t, os.Symlink(program, filepath.Join(tools, "guards")))
	in := "PATH=" + tools + "; export PATH; "
	p.wants(t, 0, `nothing is stale`, in+"make test")
	p.wants(t, 1, `6 +refused +5/5 used`, in+"guards check upload_photo --user u1 --times 6")
	p.wants(t, 0, `template.yaml +the functions`, in+"guards new jobs-guard sync_role 'reservoir 10/10s ahead 15m'")
	p.wants(t, 0, `nothing is stale`, in+"make test")
	page := p.read(t, "limits.json")
	p.write(t, "limits.json", strings.Replace(page, `"5/1m"`, `"50/1m"`, 1))
	p.wants(t, 2, `README.md +the table of limits(.*\n)*.*stale`, in+"make test")
	p.wants(t, 0, `README.md +the table of limits`, in+"guards generate")
	p.write(t, "limits.json", strings.NewReplacer(`"5/1m"`, `"5/1x"`, `"sync_role"`, `"syncRole"`).Replace(page))
	p.wants(t, 2, `limits.json:8: photos-guard, activity "upload_photo": limit is "5/1x"(.*\n)*.*limits.json:15: jobs-guard, activity "syncRole": name contains 'R'`, in+"make test")
	p.write(t, "limits.json", page)
	p.wants(t, 0, `template.yaml|README.md`, in+"guards generate")

	programs := filepath.Join(t.TempDir(), "generic")
	p.wants(t, 2, `is missing: run make generic in the checkout of Guards`, in+"make dist PROGRAMS="+programs)
	for _, name := range []string{"guard/bootstrap", "jobs-guard/bootstrap", "cleanup/bootstrap", "delayed-jobs/bootstrap", "agent-arm64/extensions/guards-agent", "agent-amd64/extensions/guards-agent"} {
		from := filepath.Dir(name)
		if strings.HasPrefix(name, "agent-") {
			from = "guards-agent"
		}
		file := filepath.Join(programs, filepath.FromSlash(name))
		testkit.OK(t, os.MkdirAll(filepath.Dir(file), 0o750))
		testkit.OK(t, os.Symlink(lambdatest.Build(t, "./cmd/generic/"+from), file))
	}
	p.wants(t, 0, ``, in+"make dist PROGRAMS="+programs)
	for _, tt := range []struct {
		folder string
		env    []string
	}{
		{"guard", []string{"GUARD_NAME=photos-guard"}},
		{"jobs-guard", []string{"GUARD_NAME=jobs-guard", "DELAYED_QUEUE_URL=http://127.0.0.1:1/000000000000/q"}},
		{"cleanup", nil},
		{"delayed-jobs", []string{"DELAYED_QUEUE_URL=http://127.0.0.1:1/000000000000/q", "READY_QUEUE_URL=http://127.0.0.1:1/000000000000/r"}},
	} {
		code := filepath.Join(p.dir, "dist", tt.folder)
		lambdatest.Start(t, filepath.Join(code, "bootstrap"), append(tt.env, "LAMBDA_TASK_ROOT="+code)...).Ready(t)
	}
	for _, agent := range []string{"agent-arm64", "agent-amd64"} {
		if p.read(t, "dist/"+agent+"/guards/limits.json") != page {
			t.Errorf("the layer %s has another page", agent)
		}
		if files, err := os.ReadDir(filepath.Join(p.dir, "dist", agent, "extensions")); err != nil || len(files) != 1 {
			t.Errorf("the folder extensions of %s has %v, %v", agent, files, err)
		}
	}
}
