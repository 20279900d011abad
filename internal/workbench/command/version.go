package command

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

func (versionCommand) Help() string {
	return `A program that was built outside a Git checkout, or by go run, knows no commit.

Examples:
  guards version
  guards version --json`
}

// A build is what a program knows about its own origin.
type build struct {
	Version  string     `json:"version"` // the tag, or what Go makes of the commit, or "devel"
	Commit   string     `json:"commit,omitempty"`
	Date     *time.Time `json:"date,omitempty"` // of the commit
	Modified bool       `json:"modified,omitempty"`
	Go       string     `json:"go"`
	Platform string     `json:"platform"`
}

func (c *versionCommand) Run(env session) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b := newBuild(info)
	if c.JSON {
		return env.printJSON(b)
	}
	_, err := fmt.Fprintln(env.out, b)
	return err
}

func newBuild(info *debug.BuildInfo) build {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := build{
		Version:  cmp.Or(strings.Trim(info.Main.Version, "()"), "devel"),
		Commit:   settings["vcs.revision"],
		Modified: settings["vcs.modified"] == "true",
		Go:       info.GoVersion,
		Platform: settings["GOOS"] + "/" + settings["GOARCH"],
	}
	if date, err := time.Parse(time.RFC3339, settings["vcs.time"]); err == nil {
		b.Date = &date
	}
	return b
}

func (b build) String() string {
	var from []string
	if b.Commit != "" {
		from = append(from, "commit "+b.Commit[:min(12, len(b.Commit))])
	}
	if b.Date != nil {
		from = append(from, "of "+b.Date.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if b.Modified {
		from = append(from, "with changes")
	}
	if len(from) == 0 {
		from = append(from, "unknown commit")
	}
	return fmt.Sprintf("guards %s (%s), %s, %s", b.Version, strings.Join(from, " "), b.Go, b.Platform)
}
