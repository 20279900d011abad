// Command driver lets the scenarios drive the Go client. It reads one command
// per line from stdin and prints one result per line. The drivers of the other
// clients speak the same language; see the package comment of the scenarios.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
)

// A command makes a new client, calls a verb of the last one, or makes several
// calls together.
type command struct {
	Together []command `json:"together"`

	New *struct {
		OnOutage        string            `json:"onOutage"`
		Timeout         int64             `json:"timeout"` // milliseconds
		DecisionTimeout int64             `json:"decisionTimeout"`
		MaxTries        int               `json:"maxTries"`
		Prefix          string            `json:"prefix"`
		URLs            map[string]string `json:"urls"`
		Agent           string            `json:"agent"`
		Token           string            `json:"token"`
		NoList          bool              `json:"noList"`
		Activities      map[string]listed `json:"activities"`
	} `json:"new"`

	Call     string          `json:"call"`
	Activity json.RawMessage `json:"activity"`
	Args     struct {
		UserID    string            `json:"userId"`
		Count     int64             `json:"count"`
		Partial   bool              `json:"partial"`
		Tier      string            `json:"tier"`
		Roles     []string          `json:"roles"`
		Subjects  map[string]string `json:"subjects"`
		RequestID string            `json:"requestId"`
		At        int64             `json:"at"`
		ReadyAt   int64             `json:"readyAt"`
		Job       any               `json:"job"`
	} `json:"args"`
	Save string `json:"save"`
	Work int64  `json:"work"` // milliseconds, of a slot
	Used int64  `json:"used"` // of a settlement
}

// listed is an activity of a list in activities.json.
type listed struct {
	Guard    string   `json:"guard"`
	Window   int64    `json:"window"` // seconds
	Subjects []string `json:"subjects"`
}

type result struct {
	OK      bool             `json:"ok,omitempty"`
	Answer  *json.RawMessage `json:"answer,omitempty"`
	Error   *failure         `json:"error,omitempty"`
	Results []result         `json:"results,omitempty"`
	Ms      int64            `json:"ms"`
}

type failure struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

var errSave = errors.New("saving failed")

func main() {
	var guards *client.Guards
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var c command
		err := json.Unmarshal(in.Bytes(), &c)
		var r result
		if err == nil && c.New != nil {
			guards, err = c.open()
			if r.OK = err == nil; !r.OK {
				r.Error, err = describe(err), nil
			}
		} else if err == nil {
			r = c.perform(guards)
		}
		out, failed := json.Marshal(r)
		if err = errors.Join(err, failed, in.Err()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s\n", out)
	}
}

// perform makes a call, or several.
func (c *command) perform(g *client.Guards) (r result) {
	r.Results = make([]result, len(c.Together))
	var wg sync.WaitGroup
	for i := range c.Together {
		wg.Go(func() { r.Results[i] = c.Together[i].perform(g) })
	}
	wg.Wait()
	if c.Together != nil {
		return r
	}
	began := time.Now()
	answer, err := c.call(g)
	if r.Answer = answer; err != nil {
		r.Error = describe(err)
	}
	r.Ms = time.Since(began).Milliseconds()
	return r
}

func (c *command) open() (*client.Guards, error) {
	list := activities.All
	if c.New.Activities != nil || c.New.NoList {
		list = nil
		for name, a := range c.New.Activities {
			list = append(list, client.Activity{Name: name, Guard: a.Guard, Window: time.Duration(a.Window) * time.Second, Subjects: a.Subjects})
		}
	}
	return client.New(context.Background(), client.Options{
		Activities: list, OnOutage: client.OnOutage(c.New.OnOutage), MaxTries: c.New.MaxTries, Prefix: c.New.Prefix, URLs: c.New.URLs,
		Agent: c.New.Agent, Token: c.New.Token,
		Timeout:         time.Duration(c.New.Timeout) * time.Millisecond,
		DecisionTimeout: time.Duration(c.New.DecisionTimeout) * time.Millisecond,
	})
}

// call calls a verb and returns its answer. "ready" has none.
func (c *command) call(g *client.Guards) (*json.RawMessage, error) {
	ctx := context.Background()
	r := client.Request{
		UserID: c.Args.UserID, Count: c.Args.Count, Partial: c.Args.Partial, Tier: c.Args.Tier, Roles: c.Args.Roles,
		Subjects: c.Args.Subjects, RequestID: c.Args.RequestID, At: c.Args.At, ReadyAt: c.Args.ReadyAt, Job: c.Args.Job,
	}
	var d client.Decision
	var err error
	switch c.Call {
	case "check":
		d, err = g.Check(ctx, c.activity(), r)
	case "status":
		d, err = g.Status(ctx, c.activity(), r)
	case "release":
		d, err = g.Release(ctx, c.activity(), r)
	case "renew":
		d, err = g.Renew(ctx, c.activity(), r)
	case "settle":
		if d, err = g.Check(ctx, c.activity(), r); err == nil {
			err = errors.Join(g.Settle(ctx, d, c.Used), g.Settle(ctx, d, c.Used))
		}
	case "slot":
		return c.slot(ctx, g, r)
	case "reset":
		d, err = g.Reset(ctx, c.activity(), r)
	case "guarded":
		err = g.Guarded(ctx, c.activity(), r, func(allowed client.Decision) error {
			d = allowed
			if c.Save == "fail" {
				return errSave
			}
			return nil
		})
	case "ready":
		if c.Activity == nil {
			return nil, g.Ready(ctx)
		}
		return nil, g.Ready(ctx, c.activity())
	default:
		err = fmt.Errorf("unknown call %q", c.Call)
	}
	if err != nil {
		return nil, err
	}
	return answer(d)
}

// slot works in a slot, and returns its decision with when the work began and ended.
func (c *command) slot(ctx context.Context, g *client.Guards, r client.Request) (*json.RawMessage, error) {
	s, err := g.Slot(ctx, c.activity(), r)
	if err != nil {
		return nil, err
	}
	defer s.Release(ctx)
	began := time.Now()
	if s.HeldUntil != 0 {
		fmt.Fprintln(os.Stderr, "began", began.UnixMilli())
	}
	if s.Allowed {
		select {
		case <-s.Context().Done():
		case <-time.After(time.Duration(c.Work) * time.Millisecond):
		}
	}
	if c.Save == "fail" {
		return nil, errSave
	}
	return answer(s.Decision, "lost", s.Lost(), "began", began.UnixMilli(), "ended", time.Now().UnixMilli())
}

// activity returns the activity in the form of the Go client.
func (c *command) activity() string {
	var name string
	if json.Unmarshal(c.Activity, &name) == nil {
		return name
	}
	var other struct{ Guard, Activity string }
	_ = json.Unmarshal(c.Activity, &other)
	return other.Guard + "/" + other.Activity
}

// answer returns a decision as JSON, with the outage's message and further names and
// values.
func answer(d client.Decision, further ...any) (*json.RawMessage, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for i := 0; i < len(further); i += 2 {
		fields[further[i].(string)] = further[i+1]
	}
	if d.Outage != nil {
		fields["outage"] = d.Outage.Error()
	}
	text, err = json.Marshal(fields)
	return (*json.RawMessage)(&text), err
}

// describe returns the class and the message of an error. An ErrLimited can have
// an ErrOutage as its cause, so only the kind counts.
func describe(err error) *failure {
	kind := err
	if e, ok := errors.AsType[*client.Error](err); ok {
		kind = e.Kind
	}
	for class, known := range map[string]error{
		"ConfigurationError": client.ErrConfiguration,
		"ValidationError":    client.ErrValidation,
		"AnswerError":        client.ErrAnswer,
		"OutageError":        client.ErrOutage,
		"LimitedError":       client.ErrLimited,
		"SaveError":          errSave,
	} {
		if errors.Is(kind, known) {
			return &failure{class, err.Error()}
		}
	}
	return &failure{fmt.Sprintf("%T", err), err.Error()}
}
