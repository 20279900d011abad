package scaffold

import (
	"fmt"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
)

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
	e := edits{changes: []Change{c}}
	e.add(p.changelog(g, a))
	if e.err != nil {
		return a, nil, e.err
	}
	stale, err := stale(p.root.FS(), all, false)
	return a, append(e.changes, stale...), err
}
