package console

import (
	"bytes"
	"embed"
	"html/template"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

//go:embed assets
var assets embed.FS

var page = template.Must(template.ParseFS(assets, "assets/page.html"))

// A pageView is what the page shows when it is served.
type pageView struct {
	Address  string
	CountsIn string
	Fixed    string
	Guards   []guardView
	Tiers    []string
	Clock    clockView
	Answers  []answerView // the newest first
	Windows  []windowView
	Last     int64 // the number of the newest answer

	// The script copies these to show more of each.
	AnAnswer answerView
	AWindow  windowView
	ABar     barView
}

// A guardView is a guard in the list of limits.
type guardView struct {
	Name       string
	Activities []activityView
}

// An activityView is an activity in the list of limits.
type activityView struct {
	Name, Limit, Kind, Tiers string
}

// servePage serves the page with what is known now.
func (c *Console) servePage(w http.ResponseWriter, _ *http.Request) {
	v := pageView{Address: c.Address, CountsIn: c.CountsIn, Fixed: c.Fixed, Guards: c.guardViews(), Tiers: c.tiers(), Clock: c.clock()}
	c.mu.Lock()
	calls, first := c.history.after(0)
	v.Last, v.Windows = c.history.n, c.views()
	c.mu.Unlock()
	for i, made := range slices.Backward(calls) {
		v.Answers = append(v.Answers, c.answer(made, first+int64(i)))
	}
	var html bytes.Buffer
	if err := page.Execute(&html, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(html.Bytes())
}

// guardViews returns the list of limits.
func (c *Console) guardViews() (all []guardView) {
	for _, g := range c.Guards {
		v := guardView{Name: g.Name}
		for _, a := range g.Activities {
			v.Activities = append(v.Activities, newActivityView(a))
		}
		all = append(all, v)
	}
	return all
}

func newActivityView(a limits.Activity) activityView {
	v := activityView{Name: a.Name, Limit: "unlimited"}
	if a.Unlimited {
		return v
	}
	v.Limit = a.Limit.String()
	var kinds []string
	for _, rate := range a.Limit.Rates() {
		kinds = append(kinds, rate.Kind)
	}
	v.Kind, v.Tiers = strings.Join(slices.Compact(kinds), ", "), scaffold.Tiers(a.Tiers, "")
	return v
}

// tiers returns the names of all tiers.
func (c *Console) tiers() []string {
	names := map[string]bool{}
	for _, g := range c.Guards {
		for _, a := range g.Activities {
			for name := range a.Tiers {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// types are the assets that the page loads.
var types = map[string]string{
	"console.css": "text/css; charset=utf-8",
	"console.js":  "text/javascript; charset=utf-8",
	"icon.svg":    "image/svg+xml",
}

// serveAsset serves a file that the page loads.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("asset")
	content, err := assets.ReadFile(path.Join("assets", name))
	if err != nil || types[name] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	_, _ = w.Write(content)
}
