package console

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
	"github.com/cric-talk/guards/internal/workbench/words"
)

// The views are what the page shows. The template writes them into the HTML as
// served, and the script gets them as JSON. Times are Unix milliseconds of the
// guards' clock.

// A clockView is the guards' clock.
type clockView struct {
	Now   int64  `json:"now"`
	Time  string `json:"time"`
	Ahead string `json:"ahead"` // how far ahead of the real time, in words; empty: not at all
}

// An answerView is one call.
type answerView struct {
	N       int64  `json:"n"`
	Time    string `json:"time"`
	From    string `json:"from"`
	What    string `json:"what"` // such as check create_post
	User    string `json:"user"`
	Kind    string `json:"kind"`    // allowed, refused, delayed, done or error; it also selects the color
	Mark    string `json:"mark"`    // a sign of the same meaning
	Verdict string `json:"verdict"` // the kind in words
	Detail  string `json:"detail"`
	Event   string `json:"event"`
	Reply   string `json:"reply"`
	Release string `json:"release"` // the event that gives the actions back; empty: no action can be given back
	Guard   string `json:"guard"`
}

// A windowView is the count of one activity, of a user or a subject.
type windowView struct {
	ID       string    `json:"id"`   // the same for the same user and activity
	User     string    `json:"user"` // or the subject, such as room=r42
	Activity string    `json:"activity"`
	Guard    string    `json:"guard"`
	Limit    string    `json:"limit"` // its text form
	Group    string    `json:"group"` // names the group and the activities that share the item; empty: none do
	Slots    string    `json:"slots"` // until when slots of a log are held, in words; empty: none are known
	Bars     []barView `json:"bars"`
	Unknown  string    `json:"unknown"`
	PassesAt int64     `json:"passesAt"` // when the refused request can pass; 0: none was refused
	Refused  string    `json:"refused"`  // refused or delayed, in words; empty: neither
	Again    string    `json:"again"`    // the event that asks once more
	ResetAt  int64     `json:"resetAt"`  // the next reset of a limit; 0: nothing counts
	Reset    string    `json:"reset"`    // the event that clears the count; empty: a place can't be given back
	Picture  string    `json:"picture"`  // the picture's address
	Lease    string    `json:"lease"`    // what the guard holds of a prepaid limit, in words; empty: nothing
}

// A barView is one limit.
type barView struct {
	Name    string `json:"name"` // empty, unless the activity has several limits
	Used    int64  `json:"used"`
	Limit   int64  `json:"limit"`
	Text    string `json:"text"`
	ResetAt int64  `json:"resetAt"` // 0: nothing counts
	Resets  string `json:"resets"`  // the time of the reset
}

// stamp returns the time of day. The page shows UTC everywhere.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) }

func (c *Console) clock() clockView {
	now := c.Clock.Now().UnixMilli()
	v := clockView{Now: now, Time: stamp(now)}
	if ahead := c.Clock.Ahead(); ahead > 0 {
		v.Ahead = c.Wait(ahead)
	}
	return v
}

// marks holds the sign of each kind of answer. The picture uses the same shapes.
var marks = map[string]string{"allowed": "●", "refused": "✕", "delayed": "◆", "done": "○", "error": "!"}

// answer returns the view of the call with the number n.
func (c *Console) answer(made call, n int64) answerView {
	r, d := made.request, made.answer
	var whose []string
	for _, p := range partsOf(r) {
		whose = append(whose, p.shown())
	}
	v := answerView{
		N: n, Time: stamp(made.at), From: made.from, What: string(r.Op) + " " + r.Activity, User: strings.Join(whose, ", "),
		Event: pretty(made.event), Reply: pretty(made.reply), Guard: made.function,
	}
	if r.Count > 1 {
		v.What += fmt.Sprintf(" × %d", r.Count)
	}
	v.Kind, v.Verdict = made.verdict()
	v.Mark, v.Detail = marks[v.Kind], c.detail(made)
	if d.RequestID != "" {
		v.Release = string(eventOf(guards.Request{
			UserID: r.UserID, Activity: r.Activity, Op: guards.Release,
			Count: d.Granted, RequestID: d.RequestID, At: d.At, Tier: r.Tier, Limit: r.Limit, Subjects: r.Subjects,
		}))
	}
	if made.reply == nil {
		v.Reply = made.err
	}
	return v
}

// verdict returns what the guard decided: its kind and in words.
func (c *call) verdict() (kind, words string) {
	op, would := c.request.Op, ""
	if op == guards.Status {
		would = "would be "
	}
	switch {
	case c.err != "" && c.counts(): // ON_LIMIT=error
		return "refused", "refused"
	case c.err != "":
		return "error", "error"
	case op == guards.Release || op == guards.Reset:
		return "done", "done"
	case op == guards.Renew && c.answer.Allowed:
		return "done", "renewed"
	case op == guards.Renew:
		return "refused", "expired"
	case c.answer.Allowed:
		return "allowed", would + "allowed"
	case c.answer.ReadyAt > 0:
		return "delayed", would + "delayed"
	}
	return "refused", would + "refused"
}

// detail returns the figures of an answer in words.
func (c *Console) detail(made call) string {
	r, d := made.request, made.answer
	var text string
	switch {
	case made.err != "":
		text = made.err
	case !made.counts():
		text = string(d.Reason)
	default:
		text = usedOf(d.ActivityCount, d.Limit, d.Remaining) + words.Reached(d.Crossed, d.Locked)
		if by := made.by(); by != "" {
			text = by + ": " + text
		}
	}
	if d.Granted > 0 && d.Granted < r.Count && r.Op != guards.Renew {
		text = fmt.Sprintf("%d of %d granted, %s", d.Granted, r.Count, text)
	}
	if d.WaitTime > 0 {
		text += ", wait " + c.Wait(d.RetryAfter())
	}
	if d.HeldUntil > 0 {
		text += ", held until " + stamp(d.HeldUntil)
	}
	if made.counts() && d.Reason != guards.OK && d.Reason != guards.Limited && d.Reason != guards.Delayed {
		text += ", " + string(d.Reason)
	}
	return text
}

func usedOf(used, limit, left int64) string {
	return fmt.Sprintf("%d of %d used, %d left", used, limit, left)
}

// barsOf returns the views of a window's limits.
func barsOf(all []guards.Figures) []barView {
	bars := make([]barView, len(all))
	for i, f := range all {
		bars[i] = barView{Name: f.Name, Used: f.ActivityCount, Limit: f.Limit, Text: usedOf(f.ActivityCount, f.Limit, f.Remaining) + words.Reached(0, f.Locked)}
		if f.ActivityCount > 0 {
			bars[i].ResetAt, bars[i].Resets = f.ResetAt, stamp(f.ResetAt)
		}
	}
	return bars
}

func (c *Console) window(w *window) windowView {
	where := url.Values{"user": {w.user}, "activity": {w.activity}}.Encode()
	limit := c.limit(w)
	v := windowView{
		Limit: limit.String(), ID: w.function + "?" + where, User: w.shown(), Activity: w.activity, Guard: w.function, Unknown: w.unknown,
		Picture: "/console/picture.svg?" + where, Group: c.sharing(w), Slots: w.held(c.Clock.Now().UnixMilli()), Lease: w.lease, Bars: w.bars,
	}
	if !limit.Queues() && w.subject == "" { // a guard clears users only
		v.Reset = string(eventOf(guards.Request{UserID: w.user, Activity: w.activity, Op: guards.Reset}))
	}
	for _, b := range w.bars {
		if b.Used > 0 && (v.ResetAt == 0 || b.ResetAt < v.ResetAt) {
			v.ResetAt = b.ResetAt
		}
	}
	if w.again != nil {
		v.PassesAt, v.Again, v.Refused = w.passesAt, string(eventOf(*w.again)), "Refused."
		switch {
		case w.place > 0:
			v.Refused = "Delayed."
		case w.by != "":
			v.Refused = "Refused by " + w.by + "."
		}
	}
	return v
}

// sharing names the group of a window's activity and the others in it, whose actions
// count in the same item.
func (c *Console) sharing(w *window) string {
	group := c.group(w.activity)
	if group == "" {
		return ""
	}
	var others []string
	for _, a := range c.Guards.Grouped() {
		if a.Group == group && a.Name != w.activity {
			others = append(others, a.Name)
		}
	}
	if len(others) == 0 {
		return "In the group " + group + "."
	}
	return "In the group " + group + ", with " + strings.Join(others, ", ") + "."
}

// pretty returns JSON on several lines, or other text, cut after 4,000 bytes.
func pretty(text []byte) string {
	const most = 4000
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		b.Reset()
		_, _ = b.Write(text)
	}
	if b.Len() > most {
		return string(bytes.ToValidUTF8(b.Bytes()[:most], nil)) + " ..."
	}
	return b.String()
}

//go:embed assets
var assets embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"kinds":    kinds,
	"tiers":    func(a limits.Activity) string { return scaffold.Tiers(a, "") },
	"subjects": func(a limits.Activity) string { return scaffold.Subjects(a, "") },
	"takesNumber": func(a limits.Activity) bool { // for one of its limits, the user's or a subject's
		return slices.ContainsFunc(a.Parts(), func(s limits.Subject) bool { return a.WithMax(s.Name) != nil })
	},
	"sample": func(a limits.Activity) string {
		return strings.ReplaceAll(strings.TrimSpace(scaffold.Options(a)), "--subject ", "")
	},
}).ParseFS(assets, "assets/page.html"))

// A pageView is what the page shows when it is served.
type pageView struct {
	Address  string
	CountsIn string
	Fixed    string
	Guards   limits.Guards
	Tiers    []string
	Subjects bool // an activity has subjects
	Clock    clockView
	Answers  []answerView // the newest first
	Windows  []windowView
	Last     int64 // the number of the newest answer

	// The script copies these to show more of each.
	AnAnswer answerView
	AWindow  windowView
	ABar     barView
}

// servePage serves the page with what is known now.
func (c *Console) servePage(w http.ResponseWriter, _ *http.Request) {
	v := pageView{Address: c.Address, CountsIn: c.CountsIn, Fixed: c.Fixed, Guards: c.Guards, Tiers: c.Guards.TierNames(), Clock: c.clock()}
	for _, g := range c.Guards {
		v.Subjects = v.Subjects || slices.ContainsFunc(g.Activities, func(a limits.Activity) bool { return len(a.Subjects) > 0 })
	}
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

func kinds(limit policy.Policy) string {
	var kinds []string
	for _, rate := range limit.Rates() {
		kinds = append(kinds, rate.Kind)
	}
	return strings.Join(slices.Compact(kinds), ", ")
}

// types are the assets that the page loads.
var types = map[string]string{
	"console.css": "text/css; charset=utf-8",
	"console.js":  "text/javascript; charset=utf-8",
	"icon.svg":    "image/svg+xml",
}

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
