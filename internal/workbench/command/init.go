package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

type initCommand struct {
	Dir      string `arg:"" name:"folder" help:"The folder of the project, such as my-guards. It is made if it does not exist."`
	Guard    string `required:"" placeholder:"NAME" help:"The first guard, such as photos-guard."`
	Activity string `required:"" placeholder:"NAME" help:"What your users do, such as upload_photo."`
	Limit    string `required:"" placeholder:"TEXT" help:"How often, such as 5/1m."`
	optionFlags
	Page    string `enum:"go,json" default:"go" help:"The form of the page of limits: go, or json for a project without Go (${default})."`
	Module  string `placeholder:"PATH" help:"The module of the project, such as example.com/my-guards. Default: the folder's name."`
	Replace string `placeholder:"FOLDER" help:"Take Guards from this checkout instead of a published version. A program without a version takes the checkout that you are in."`
	yesFlag
	DryRun bool `help:"List the files, and write nothing."`
	JSON   bool `name:"json" help:"Print one JSON document."`
}

func (initCommand) Help() string {
	return `The command makes a project of your own that requires Guards: your limits on one
page, a Lambda function for each guard, the stack for SAM, and a command line that
knows your limits. It asks first if the folder has other files than .git, .gitignore
and a licence. At the end it runs go mod tidy, which downloads modules. Examples:
  guards init ../my-guards --guard photos-guard --activity upload_photo --limit 5/1m
  guards init ../my-guards --guard chat-guard --activity write --limit 10/1m --subject room=600/1m
  guards init ../my-guards --page json --guard photos-guard --activity upload_photo --limit 5/1m
  guards init . --guard sms-guard --activity send_code --limit "minute: bucket 1/1m, day: 10/1d"`
}

// A newProject is what the command did, as JSON.
type newProject struct {
	Folder string        `json:"folder"`
	Module string        `json:"module"`
	DryRun bool          `json:"dryRun"`
	Files  []changedFile `json:"files"`
}

func (c *initCommand) Run(ctx context.Context, env session) (err error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	r := scaffold.Request{Guard: c.Guard, New: true}
	if r.Activity, err = c.activity(c.Activity, c.Limit); err != nil {
		return err
	}
	if inside := checkout(filepath.Dir(dir)); inside != "" {
		return fmt.Errorf("the folder %s lies in a checkout of Guards, want one outside, such as %s", c.Dir, filepath.Join(filepath.Dir(inside), filepath.Base(dir)))
	}
	from, err := c.origin(dir)
	if err != nil {
		return err
	}
	name := cmp.Or(c.Module, filepath.Base(dir))
	if c.Page == "json" && c.Module != "" {
		return errors.New("--module goes with a page in Go")
	}
	files := scaffold.Init
	if c.Page == "json" {
		files = scaffold.InitPage
	}
	a, changes, err := files(name, r, from)
	if err != nil {
		return err
	}
	if changes, err = c.write(ctx, env, dir, changes); err != nil {
		return err
	}
	p := newProject{dir, name, c.DryRun, changedFiles(changes, false)}
	if c.JSON {
		return env.printJSON(p)
	}
	if err := env.printChanges(p.Files); err != nil {
		return err
	}
	if c.DryRun {
		env.note("nothing was written, because of --dry-run")
		return nil
	}
	program := "guards"
	if c.Page == "go" {
		program = "go run ./cmd/guards"
		if from.Replace != "" {
			env.note("the project builds only beside " + from.Replace + ", because go.mod takes Guards from there")
		}
	}
	env.note(fmt.Sprintf("next: cd %s && %s check %s --user u1%s --times %d",
		word(c.Dir), program, c.Activity, scaffold.Options(a), scaffold.Refused(a)))
	return nil
}

// write writes the files into a folder, and fetches the modules. If the folder has files of
// something else, it asks first. With --dry-run, it does neither.
func (c *initCommand) write(ctx context.Context, env session, dir string, changes []scaffold.Change) ([]scaffold.Change, error) {
	changes, others, err := scaffold.Into(dir, changes)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		const most = 3 // names in a question
		names := strings.Join(others[:min(most, len(others))], ", ")
		if more := len(others) - most; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		if c.DryRun {
			env.note(fmt.Sprintf("the folder %s has other files: %s", dir, names))
		} else if err := c.confirm(ctx, env, fmt.Sprintf("The folder %s has other files: %s. Make the project among them?", dir, names), ", or choose a new folder"); err != nil {
			return nil, err
		}
	}
	if c.DryRun {
		return changes, nil
	}
	if err := scaffold.Create(dir, changes); err != nil || c.Page == "json" {
		return changes, err
	}
	return changes, env.tidy(ctx, dir)
}

// origin returns where the project gets Guards from: a checkout, or the version of
// this program, if it is one that can be downloaded.
func (c *initCommand) origin(dir string) (scaffold.Origin, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	version, folder := published(info), checkout(cmp.Or(c.Replace, "."))
	switch {
	case c.Replace == "" && version != "":
		return scaffold.Origin{Version: version}, nil
	case c.Replace == "" && folder == "":
		return scaffold.Origin{}, hint{errors.New("this program is no published version, so a project can't require it"), "name a checkout of Guards with --replace"}
	case folder == "":
		return scaffold.Origin{}, fmt.Errorf("--replace: %s is in no checkout of %s", c.Replace, scaffold.Module)
	}
	to, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return scaffold.Origin{}, err
	}
	if at, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil { // relative, so that both folders can move together
		if relative, err := filepath.Rel(filepath.Join(at, filepath.Base(dir)), to); err == nil && strings.HasPrefix(relative, "..") {
			to = relative
		}
	}
	if strings.ContainsAny(to, " \t") {
		return scaffold.Origin{}, fmt.Errorf("the checkout %s has a space in its path, and make can't take that: move it", to)
	}
	return scaffold.Origin{Version: "v0.0.0", Replace: filepath.ToSlash(to)}, nil
}

// word returns a text as one word of a shell.
func word(text string) string {
	if strings.ContainsAny(text, " \t'\"$&;|<>()*?`\\") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// untagged is the end of a version that Go makes of a commit without a tag.
var untagged = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)

// published returns the version of [scaffold.Module] in a program, or nothing if the
// program was built from a checkout that has no tag.
func published(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != scaffold.Module || m.Replace != nil || !strings.HasPrefix(m.Version, "v") || strings.Contains(m.Version, "+") {
			continue
		}
		local := m == &info.Main &&
			slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
		if !local || !untagged.MatchString(m.Version) {
			return m.Version
		}
	}
	return ""
}

// checkout returns the checkout of Guards that contains a folder, or nothing.
func checkout(folder string) string {
	if root := moduleOf(folder); isModule(root, scaffold.Module) {
		return root
	}
	return ""
}
