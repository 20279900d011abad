package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/plot"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

type replayCommand struct {
	Files    []string `arg:"" name:"file" help:"Recorded traffic: CSV with a header, JSON lines, a log of a web server or of AWS, or an export of CloudWatch, also compressed with gzip or zstd. - is standard input."`
	Activity string   `placeholder:"A" help:"The activity to replay, or a pattern such as \"POST /posts*\". Lines that name another one are skipped. Lines without an activity are counted."`
	Limit    []string `sep:"none" placeholder:"LIMIT" help:"The limit to try, such as 20/1m, \"log 100/12h\" or \"minute: 10/1m, day: 200/1d\". Default: the activity's own limit. Without --activity: ACTIVITY=LIMIT, once for each activity of a group, whose limits have names."`
	Group    string   `placeholder:"G" help:"Replay all activities of this group of the code, each with its own limits or with its limit from --limit."`
	Subject  []string `sep:"none" placeholder:"NAME=LIMIT" help:"Count each request for a subject, too, such as room=600/1m. Its id is in the column with its name. Without a limit, the limit of the activity in the code applies. Can be repeated, from the narrowest to the widest."`
	Compare  []string `sep:"none" placeholder:"LIMIT" help:"One more limit to show beside the first one. Repeat the flag for more."`
	Suggest  string   `placeholder:"99.9%" help:"Find the lowest limit, of the kind and window of --limit, that leaves this share of the users untouched."`
	Format   string   `enum:"auto,csv,json,nginx,fields" default:"auto" help:"The format of the files: auto, csv, json, nginx (its format combined) or fields (between spaces). The value auto recognizes all but fields, and the logs of ALB, CloudFront, API Gateway, S3, Apache, Caddy, Traefik, HAProxy, Envoy and W3C."`
	Columns  string   `placeholder:"time=NAME,..." help:"The names of columns, fields of a log or JSON fields, such as time=ts,user=account_id,activity=verb,room=room_id,limit=bought."`
	Zone     string   `placeholder:"ZONE" help:"The time zone of times without one, such as Europe/Berlin. Default: UTC."`
	Hops     int      `placeholder:"N" default:"1" help:"Which address of X-Forwarded-For is the user, counted from the last one: the number of your own proxies. Default: 1."`
	Unit     string   `enum:"auto,s,ms" default:"auto" help:"The unit of times that are numbers: auto, s or ms. auto knows the years 2000 to 2099."`
	SkipBad  bool     `help:"Skip lines that are no requests, and report how many."`
	Plot     string   `placeholder:"OUT.svg" help:"Draw the timeline of the user who was held up most, or of --user."`
	User     string   `placeholder:"ID" help:"The user whose timeline to draw."`
	JSON     bool     `name:"json" help:"Print one JSON document."`

	also []replay.Subject // of Subject; validate sets it
}

func (replayCommand) Help() string {
	return `Each request is decided at the time that the file gives, and counted in memory.
A log is recognized by its lines, and the output says which field is the user. In a
log, an activity such as "POST /posts" is the method and the path of a request, and any
other name stands for all requests. Several files are read in the order of their times. A limit is written as guards limits shows it. A prepaid
limit is decided exactly, without leases. A request's own number for a limit with a max is in
the column limit. Examples:
  guards replay traffic.csv --activity {activity}
  guards replay traffic.csv --activity {activity} --limit 20/1m --plot out.svg
  guards replay traffic.csv --activity {activity} --limit "minute: 10/1m, day: 200/1d"
  guards replay traffic.csv --activity {activity} --limit 20/1m --compare "log 20/1m" --compare "bucket 20/1m"
  guards replay traffic.csv --activity {activity} --limit "bucket 20/1m" --suggest 99.9%
  guards replay traffic.csv --limit "post=posts: 10/1m, writes: 100/1h cost 2" --limit "comment=writes: 100/1h"
  guards replay traffic.csv --group {group}
  guards replay messages.csv --activity write --limit 10/1m --subject room=600/1m --columns room=room_id
  guards replay posts.csv --activity {activity} --columns time=created_at,user=author_id
  guards replay access.log* --activity request --limit 100/1m
  guards replay alb/*.log.gz --activity "POST /posts*" --limit 20/1m
  guards replay access.log --columns user=http_x_forwarded_for --hops 2 --activity request --limit 100/1m
  guards replay - --activity {activity} --json < traffic.jsonl.gz`
}

// Run replays the files. If there is a timeline to draw, it reads them twice.
func (c *replayCommand) Run(ctx context.Context, env session) error {
	if c.Activity == "" {
		return c.runGroup(ctx, env)
	}
	limits, o, err := c.validate(env)
	if err != nil {
		return err
	}
	in, err := openRecord(ctx, c.Files, c.Plot != "")
	if err != nil {
		return err
	}
	defer in.close()
	if name := in.same(c.Plot); name != "" {
		return input.Invalid("--plot", "the file "+name+", which would be overwritten", "another file")
	}
	r := &replay.Replay{Activity: c.Activity, Policy: limits[0], Subjects: c.also, Progress: func(lines int64) { in.progress(env, lines) }}
	if c.Suggest != "" {
		return c.suggest(ctx, env, r, in.reader(o))
	}
	reports, err := r.Compare(ctx, in.reader(o), limits[1:]...)
	var result any = reports[0]
	words := func(b *strings.Builder) { writeReport(b, reports[0], env.width) }
	if len(reports) > 1 {
		result = map[string]any{"limits": reports}
		words = func(b *strings.Builder) { writeComparison(b, reports, env.width) }
	}
	if err = c.report(ctx, env, reports, err, result, words); err != nil || c.Plot == "" {
		return err
	}
	return c.plot(ctx, env, r, in.reader(o), reports, limits[1:])
}

// validate returns the limits, --limit first, and how to read the files.
func (c *replayCommand) validate(env session) (all []policy.Policy, o traffic.Options, err error) {
	p, err := c.policy(env)
	if err != nil {
		return nil, o, err
	}
	if _, a, ok := env.guards.Activity(c.Activity); ok && a.Group != "" && len(c.Limit) == 0 {
		env.note(fmt.Sprintf("only requests of %s are counted; --group %s counts those of the whole group", c.Activity, a.Group))
	}
	all = []policy.Policy{p}
	for _, text := range c.Compare {
		p, err := policy.Parse(text)
		if err != nil {
			return nil, o, fmt.Errorf("--compare: %w", err)
		}
		all = append(all, p)
	}
	if c.also, err = c.subjects(env, all); err != nil {
		return nil, o, err
	}
	if o, err = c.options(all, c.Activity); err != nil {
		return nil, o, err
	}
	return all, o, c.check()
}

// options returns how to read the files and find activities in them, if these limits are tried.
func (c *replayCommand) options(all []policy.Policy, activities ...string) (o traffic.Options, err error) {
	o = traffic.Options{ // auto is empty there
		Activity: c.Activity, SkipBad: c.SkipBad,
		Format: traffic.Format(strings.TrimPrefix(c.Format, "auto")), Unit: traffic.Unit(strings.TrimPrefix(c.Unit, "auto")),
	}
	for _, text := range c.Subject {
		name, _, _ := strings.Cut(text, "=")
		o.Subjects = append(o.Subjects, name)
	}
	for _, activity := range activities {
		if strings.Contains(activity, "*") {
			o.Patterns = append(o.Patterns, activity)
		}
	}
	if c.Hops < 1 {
		return o, input.Invalid("--hops", strconv.Itoa(c.Hops), "1 for the last address, or a higher number")
	}
	o.Hops = c.Hops
	if c.Zone != "" {
		if o.Zone, err = time.LoadLocation(c.Zone); err != nil {
			return o, fmt.Errorf("--zone: %w", &policy.ZoneError{Zone: c.Zone})
		}
	}
	if c.Columns != "" {
		o.Columns, err = traffic.ParseColumns(c.Columns, o.Subjects...)
	}
	o.Numbers = c.Suggest == "" && slices.ContainsFunc(all, policy.Policy.TakesNumber)
	if o.Columns.Limit != "" && !o.Numbers {
		return o, errors.New("--columns limit=NAME goes with a single limit that has a max, such as \"100/1h max 5000\", and without --suggest")
	}
	return o, err
}

func (c *replayCommand) policy(env session) (policy.Policy, error) {
	switch len(c.Limit) {
	case 0:
	case 1:
		p, err := policy.Parse(c.Limit[0])
		if err != nil {
			err = fmt.Errorf("--limit: %w", err)
		}
		return p, err
	default:
		return policy.Policy{}, errors.New("--limit is given twice: of one activity, --compare shows more limits")
	}
	_, a, err := env.find(c.Activity)
	if err != nil || !a.Unlimited {
		return a.Limit, err
	}
	return policy.Policy{}, fmt.Errorf("%s is unlimited: give a --limit to try, such as 20/1m", c.Activity)
}

// maxActivity is longer than a guard's activities, because it can also be
// the path of a request in a log.
const maxActivity = 200

// check returns an error if flags do not fit together.
func (c *replayCommand) check() error {
	if c.Group != "" {
		return errors.New("--group goes without --activity, because it names all activities of the group")
	}
	if c.Plot != "" && !strings.HasSuffix(c.Plot, ".svg") {
		return input.Invalid("--plot", input.Show(c.Plot), "the name of a file that ends in .svg")
	}
	if len(c.Activity) < 1 || len(c.Activity) > maxActivity {
		return input.Invalid("--activity", input.Show(c.Activity), fmt.Sprintf("1 to %d characters", maxActivity))
	}
	if c.User != "" && c.Plot == "" {
		return errors.New("--user goes with --plot")
	}
	if c.Suggest != "" && (c.Plot != "" || len(c.Compare) > 0) {
		return errors.New("--suggest goes without --plot and --compare: give these with the suggestion as --limit")
	}
	if c.Plot != "" {
		return checkTarget(c.Plot)
	}
	return nil
}

// report prints the result of a replay, which has these reports and may have ended with an error.
func (c *replayCommand) report(
	ctx context.Context, env session, reports []*replay.Report, err error, result any, words func(*strings.Builder),
) error {
	env.clearLine()
	requests, last := int64(0), int64(0)
	for _, r := range reports {
		requests, last = requests+r.Requests, max(last, r.To)
	}
	if err != nil && (ctx.Err() == nil || requests == 0) {
		return err
	}
	err = errors.Join(err, c.print(env, result, words))
	if ctx.Err() != nil {
		env.note("stopped before the end: the figures are those of the requests until " + moment(last))
		return ctx.Err()
	}
	return err
}

func (c *replayCommand) print(env session, result any, words func(*strings.Builder)) error {
	if c.JSON {
		return env.printJSON(result)
	}
	var b strings.Builder
	words(&b)
	_, err := io.WriteString(env.out, b.String())
	return err
}

// suggest searches for the lowest limit, with the requests in a temporary file.
func (c *replayCommand) suggest(ctx context.Context, env session, r *replay.Replay, t *traffic.Reader) (err error) {
	share, err := replay.ParseShare(c.Suggest)
	if err != nil {
		return fmt.Errorf("--suggest: %w", err)
	}
	file, err := os.CreateTemp("", "guards-replay-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	got, err := r.Suggest(ctx, t, share, file, func(p policy.Policy) { env.tell("trying " + p.String()) })
	env.clearLine()
	if ctx.Err() != nil {
		env.note("stopped before the end of the search")
	}
	if got == nil {
		return err
	}
	return errors.Join(err, c.print(env, got, func(b *strings.Builder) { writeSuggestion(b, got, share) }))
}

// plot replays the requests of one user again and draws them.
func (c *replayCommand) plot(ctx context.Context, env session, r *replay.Replay, t *traffic.Reader, reports []*replay.Report, others []policy.Policy) error {
	timelines, err := r.Timelines(ctx, t, reports, c.User, others...)
	env.clearLine()
	if err != nil {
		return err
	}
	svg, err := os.Create(c.Plot)
	if err != nil {
		return err
	}
	return errors.Join(plot.SVG(svg, timelines...), svg.Close())
}

// checkTarget returns an error unless a file can be written. It leaves no trace:
// an existing file keeps its content.
func checkTarget(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return errors.Join(file.Close(), os.Remove(name))
	case !errors.Is(err, os.ErrExist):
		return err
	}
	if file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return err
	}
	return file.Close()
}

// explain tells how to go on after a line that is no request.
func (c *replayCommand) explain(err error) error {
	if _, ok := errors.AsType[*traffic.BadLine](err); ok {
		return hint{err, "--skip-bad goes on without such lines and counts them"}
	}
	return err
}

// subjects returns the subjects of --subject with their limits: the flag's limits, or
// else the code's. They go with these limits of users.
func (c *replayCommand) subjects(env session, users []policy.Policy) (all []replay.Subject, err error) {
	switch {
	case len(c.Subject) == 0:
	case c.Suggest != "" || c.Plot != "":
		return nil, errors.New("--subject goes without --suggest and --plot")
	case slices.ContainsFunc(users, policy.Policy.Queues):
		return nil, errors.New("--subject goes without a reservoir, which gives places to users alone")
	}
	_, a, _ := env.guards.Activity(c.Activity)
	for _, text := range c.Subject {
		name, limit, given := strings.Cut(text, "=")
		s := replay.Subject{Name: name}
		switch {
		case given:
			if s.Policy, err = policy.Parse(limit); err != nil {
				return nil, fmt.Errorf("--subject %s: %w", name, err)
			}
		case !a.Has(name) || name == "":
			return nil, hint{hasSubject(a, name), "give a limit to try: --subject " + name + "=600/1m"}
		default:
			s.Policy = a.Part(name).Limit
		}
		all = append(all, s)
	}
	if len(all) == 0 && len(a.Subjects) > 0 {
		env.note(fmt.Sprintf("only users are limited here; --subject %s limits the %[1]s of each request, too", a.Subjects[0].Name))
	}
	return all, validSubjects(all)
}

// validSubjects returns an error for subjects that no activity can have.
func validSubjects(all []replay.Subject) error {
	one := guards.Activity{Name: "activity_of_replay", Limit: "1/1m"} // only its subjects are checked
	for _, s := range all {
		one.Subjects = append(one.Subjects, guards.Subject{Name: s.Name, Limit: guards.Limit(s.Policy.String())})
	}
	err := guards.Validate([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{one}}})
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(err.Error(), fmt.Sprintf("g, activity %q", one.Name), "--subject"))
}
