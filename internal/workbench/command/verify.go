package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

type verifyCommand struct {
	Activity       string `arg:"" help:"The activity to verify: see guards limits."`
	Callers        int    `default:"50" placeholder:"N" help:"How many callers ask at once (${default})."`
	LambdaEndpoint string `aliases:"endpoint-url" placeholder:"URL" help:"Ask the guard through Lambda's Invoke API at this address, such as http://127.0.0.1:3001 for guards serve."`
	Function       string `placeholder:"NAME" help:"The deployed guard's name, if it is not the one that guards limits shows."`
	Invoke         bool   `help:"Ask the deployed guard through AWS's own Invoke API."`
	JSON           bool   `name:"json" help:"Print one JSON document."`
	storeFlags

	live *live.Limits // what operators changed; asker sets it, unless a function follows it
}

func (verifyCommand) Help() string {
	return `Many callers ask at once for one user. Exactly the limit must get through, and the
user's item must count what was allowed. The command makes up a user, and clears that
user's count afterwards. A reservoir's places can't be given back; they expire.
If the activity is in a group, callers ask for all of its activities at once. No limit
may be exceeded, and at the end nothing more may fit. With --function dev-{guard}, the
names of the group's other guards get the same prefix.
If the activity has subjects, such as a room, several users ask in the same subjects, for
this activity alone. Exactly the lowest limit of a subject must get through. A guard
clears users only, so with --invoke the counts of subjects stay until they expire.
Of a prepaid limit, at most the limit must get through and at least 100, because instances
can hold the rest in leases. Its item must count no less than what was allowed. Through a
function, a live limit counts as prepaid only if the code's limit is.
The exit status is 1 unless exactly that was allowed. Examples:
  guards verify {activity}
  guards verify {activity} --store dynamodb --callers 100
  guards verify {activity} --lambda-endpoint http://127.0.0.1:3001
  guards verify {activity} --invoke --function dev-{guard}`
}

// Run returns errRefused unless the race is exact.
func (c *verifyCommand) Run(ctx context.Context, env session) error {
	g, activity, err := env.find(c.Activity)
	if err != nil {
		return err
	}
	if activity.Unlimited {
		return fmt.Errorf("%s is unlimited: there is nothing to verify", c.Activity)
	}
	if c.Callers < 1 || c.Callers > 10_000 {
		return input.Invalid("--callers", fmt.Sprint(c.Callers), "1 to 10000")
	}
	group := []limits.Activity{activity}
	if len(activity.Subjects) == 0 {
		group = slices.DeleteFunc(countedIn(env.guards, itemOf(activity)), func(a limits.Activity) bool { return len(a.Subjects) > 0 })
	}
	if len(group) > 1 && queues(group) {
		return fmt.Errorf("%s can't be verified: its group gives places in later windows, which can't be given back", c.Activity)
	}
	g.Activities = group // the embedded store is asked about all of them at once
	ask, err := c.asker(ctx, env, g)
	if err != nil {
		return err
	}
	v, err := c.race(ctx, env, ask, group)
	if err != nil {
		return err
	}
	return v.print(env, c.JSON)
}

// A raceResult holds what the command prints.
type raceResult struct {
	Activity string  `json:"activity"`       // or a group
	Limit    int64   `json:"limit,omitzero"` // how many actions fit; a group has Limits
	Asked    int     `json:"asked"`
	Allowed  int     `json:"allowed"`
	Exact    bool    `json:"exact"` // of a prepaid limit: it kept its own promise
	Prepaid  bool    `json:"prepaid,omitzero"`
	TookMs   float64 `json:"tookMs"`
	P50Ms    float64 `json:"p50Ms"`
	P99Ms    float64 `json:"p99Ms"`

	Activities []portion   `json:"activities,omitempty"` // of a group
	Limits     []usedLimit `json:"limits,omitempty"`     // those with a name; of an activity with subjects, theirs
	Users      int         `json:"users,omitzero"`       // who shared the subjects

	Miscount string `json:"miscount,omitzero"` // the first item that does not count what was allowed, in words

	left error // why the counts could not be removed; nil if they were
}

// A portion is what one activity of a group got.
type portion struct {
	Activity string `json:"activity"`
	Asked    int64  `json:"asked"`
	Allowed  int64  `json:"allowed"`
}

// A usedLimit is how much of a limit was taken. The figures of a group's limit are in units, and
// an action takes as many units as its cost. Other figures are in actions.
type usedLimit struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"` // the highest of an activity
	Used  int64  `json:"used"`
}

// report writes to v how long the checks took, what each activity of a group got, and how much
// of each limit was taken that has a name. If there are subjects, these are their limits only.
func (r *race) report(v *raceResult, checks []call, all map[spot]taken) {
	v.Asked = len(checks)
	if r.subjects != nil {
		v.Users = len(r.users)
	}
	for _, l := range r.lanes {
		v.Activities = append(v.Activities, portion{Activity: l.activity})
		for _, one := range l.limits {
			if one.Name == "" || r.subjects != nil && one.subject == "" {
				continue
			}
			t := all[one.in(r.users[0])]
			if u := (usedLimit{one.Name, t.limit, t.used}); !slices.Contains(v.Limits, u) {
				v.Limits = append(v.Limits, u)
			}
		}
	}
	took := make([]float64, len(checks))
	for i, one := range checks {
		took[i] = milliseconds(one.took)
		part := &v.Activities[slices.Index(r.lanes, one.lane)]
		part.Asked++
		if one.Allowed {
			part.Allowed++
			v.Allowed++
		}
	}
	if len(r.lanes) == 1 {
		v.Activities = nil
	}
	slices.Sort(took)
	v.P50Ms, v.P99Ms = took[len(took)/2], took[len(took)*99/100]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// print writes the result. It returns errRefused unless the result is exact, and otherwise the error of the clean-up.
func (v raceResult) print(env session, asJSON bool) error {
	err := env.print(asJSON, v, fmt.Sprintf("%s: %d of %d allowed, %s%s, in %.0f ms (p50 %.1f ms, p99 %.1f ms)",
		v.Activity, v.Allowed, v.Asked, v.verdict(env), v.details(), v.TookMs, v.P50Ms, v.P99Ms))
	if err == nil && !v.Exact {
		return errRefused
	}
	return cmp.Or(err, v.left)
}

// verdict returns in words whether what was allowed is what the limits promise.
func (v raceResult) verdict(env session) string {
	limit, promise := "limit", "as a prepaid one promises"
	number := fmt.Sprintf(" of %d", v.Limit)
	switch {
	case v.Users > 0:
		limit, number, promise = "lowest limit of a subject", fmt.Sprintf(", %d", v.Limit), "as prepaid ones promise"
	case v.Activities != nil:
		limit, number, promise = "limits", "", "as prepaid ones promise"
	}
	switch {
	case v.Exact && v.Prepaid:
		return env.paint(green, "at most the "+limit+number+", "+promise)
	case v.Exact:
		return env.paint(green, "exactly the "+limit)
	case v.Miscount != "":
		return env.paint(red, "but "+v.Miscount)
	default:
		return env.paint(red, "not the "+limit+number)
	}
}

// details describes in words how much of each limit is used, how many requests of each activity
// were allowed, and the number of users.
func (v raceResult) details() string {
	var used, by []string
	for _, l := range v.Limits {
		used = append(used, fmt.Sprintf("%s %d/%d", l.Name, l.Used, l.Limit))
	}
	for _, p := range v.Activities {
		by = append(by, fmt.Sprintf("%s %d of %d", p.Activity, p.Allowed, p.Asked))
	}
	if v.Users > 0 {
		by = append(by, plural(int64(v.Users), "user"))
	}
	text := ""
	if used != nil {
		text = ": " + strings.Join(used, ", ")
	}
	if by != nil {
		text += " (" + strings.Join(by, ", ") + ")"
	}
	return text
}
