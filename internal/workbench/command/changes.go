package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// openProject finds the project that contains a folder: of the page, if it is a file of JSON and
// nobody names another folder, or else in Go.
func (c session) openProject(folder string) (*scaffold.Project, error) {
	if c.pageFile != "" && folder == "." {
		return scaffold.OpenPage(c.pageFile, c.page)
	}
	project, err := scaffold.Open(folder, c.page)
	switch {
	case errors.Is(err, scaffold.ErrNoProject) && c.installed() && pagefile.Above(folder) != "":
		err = hint{fmt.Errorf("--dir is %q, which has a page of its own: %s", folder, pagefile.Above(folder)), "run the command in that folder, without --dir"}
	case errors.Is(err, scaffold.ErrNoProject):
		err = hint{err, "run the command in a project, name one with --dir, or make one with guards init"}
	case errors.Is(err, scaffold.ErrOtherLimits), errors.Is(err, scaffold.ErrMoreLimits), errors.Is(err, scaffold.ErrNotTheSame):
		err = hint{err, "in place of guards, write go run ./cmd/guards, which has the limits of this file; it knows the guards that are in All"}
	}
	return project, err
}

// write writes changes to a project. The first delayed queue of a project needs
// modules that its go.sum does not have yet.
func (c session) write(ctx context.Context, p *scaffold.Project, changes []scaffold.Change) error {
	if err := p.Write(changes); err != nil || !scaffold.NeedModules(changes) {
		return err
	}
	return c.tidy(ctx, p.Dir)
}

// tidy completes go.mod and go.sum of a project.
func (c session) tidy(ctx context.Context, dir string) error {
	c.note("fetching modules with go mod tidy")
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return hint{fmt.Errorf("go mod tidy: %w\n%s", err, strings.TrimSpace(string(out))), "the files are written; when the cause is mended, run go mod tidy in " + dir}
	}
	return nil
}

// A changedFile is one that a command wrote, or would write.
type changedFile struct {
	File string `json:"file"`
	New  bool   `json:"new"`
	Gone bool   `json:"removed,omitzero"`
	What string `json:"what"`
	Diff string `json:"diff,omitempty"`
}

// changedFiles describes changes, perhaps with the changed lines.
func changedFiles(changes []scaffold.Change, lines bool) []changedFile {
	files := make([]changedFile, len(changes))
	for i, c := range changes {
		files[i] = changedFile{File: c.File, New: c.New, Gone: c.Gone, What: c.What}
		if !lines {
			continue
		}
		before := "a/" + c.File
		if c.New {
			before = "/dev/null"
		}
		files[i].Diff = string(diff.Diff(before, []byte(c.Before), "b/"+c.File, []byte(c.After)))
	}
	return files
}

// printChanges prints a table of files, and below it their changed lines.
func (c session) printChanges(files []changedFile) error {
	var t textTable
	t.head("FILE", "CHANGE")
	for _, f := range files {
		what := f.What
		switch {
		case f.New:
			what = "new: " + what
		case f.Gone:
			what = "removed: " + what
		}
		t.row(f.File, what)
	}
	err := t.write(c.out, c.width)
	for _, f := range files {
		if f.Diff != "" && err == nil {
			_, err = fmt.Fprint(c.out, "\n"+f.Diff)
		}
	}
	return err
}
