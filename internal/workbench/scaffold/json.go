package scaffold

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"text/template"

	"golang.org/x/tools/txtar"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
)

//go:embed page.txtar
var pageFiles string

var pageText = template.Must(template.New("").Delims("[[", "]]").Parse(pageFiles))

// InitPage is [Init] for a project whose page is a file of JSON. It has no module.
func InitPage(name string, r Request, from Origin) (a limits.Activity, changes []Change, err error) {
	g := guards.Guard{Name: r.Guard, Message: tooMany, Activities: []guards.Activity{r.Activity}}
	all, err := limits.Link([]guards.Guard{g})
	if err := errors.Join(validName(r.Guard), err); err != nil {
		return a, nil, err
	}
	a = all[0].Activities[0]
	g.DelayedQueue = a.Limit.Queues()
	all[0].DelayedQueue = g.DelayedQueue
	filling := from.fill(name, all[0])
	filling.Page, filling.Generate, filling.Step = pagefile.Name, "guards generate", "package"
	files := []txtar.File{{Name: pagefile.Name, Data: []byte(pagefile.Text(g))}}
	for _, text := range []*template.Template{projectText, pageText} {
		more, err := filling.files(text)
		if err != nil {
			return a, nil, err
		}
		for _, f := range more {
			if text == pageText || slices.Contains([]string{templateFile, ignoreFile}, f.Name) {
				files = append(files, f)
			}
		}
	}
	changes, err = generated(files, all, false)
	for i := range changes {
		if changes[i].File == "Makefile" {
			changes[i].What = "checks the page, puts it and the programs together, and deploys"
		}
	}
	return a, changes, err
}

// addToFile is Add for a page in JSON. The program has read the page, so no file can be older
// than it.
func (p *Project) addToFile(r Request) (a limits.Activity, changes []Change, err error) {
	before, err := p.read(p.file)
	if err != nil {
		return a, nil, err
	}
	c := Change{File: p.file, Before: before}
	if r.New {
		g := guards.Guard{Name: r.Guard, Message: tooMany, Activities: []guards.Activity{r.Activity}}
		if linked, err := limits.Link([]guards.Guard{g}); err == nil {
			_, queued := p.guards.Queued()
			g.DelayedQueue = !queued && linked[0].Activities[0].Limit.Queues()
		}
		c.After, err = pagefile.WithGuard(before, g)
	} else {
		c.After, err = pagefile.WithActivity(before, r.Guard, r.Activity)
	}
	if err != nil {
		return a, nil, fmt.Errorf("%s: %w", p.file, err)
	}
	page, err := pagefile.Read(p.file, []byte(c.After))
	if err != nil {
		return a, nil, err
	}
	all, err := limits.Link(page)
	if err != nil {
		return a, nil, err
	}
	g, a, _ := all.Activity(r.Activity.Name)
	c.What = fmt.Sprintf("%s of %s: %s", a.Name, g.Name, limitsOf(a))
	if r.New {
		c.What = fmt.Sprintf("the guard %s with %s: %s", g.Name, a.Name, limitsOf(a))
	}
	changes, err = p.following(c, g, a, all)
	return a, changes, err
}
