// Package cricket has the guards of this repository's own page, the page of a cricket app,
// as they decide. A test of something that takes a page uses the page itself.
package cricket

import (
	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	page "github.com/cric-talk/guards/limits"
)

// All are the guards of the page.
var All = Link(page.All...)

// Some of them, by the names that they have on the page.
var (
	Posts    = named(page.Posts)
	Comments = named(page.Comments)
	Pins     = named(page.Pins)
	Chat     = named(page.Chat)
	Ingest   = named(page.Ingest)
	Jobs     = named(page.Jobs)
)

// Link returns guards of a page with their limits read. It panics if the page has a mistake.
func Link(page ...guards.Guard) limits.Guards {
	all, err := limits.Link(page)
	if err != nil {
		panic(err)
	}
	return all
}

func named(g guards.Guard) limits.Guard {
	linked, _ := All.Named(g.Name)
	return linked
}
