package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

type topCommand struct {
	Activity string         `placeholder:"A" help:"This activity only."`
	Near     int            `default:"80" placeholder:"PERCENT" help:"Show users who have used at least this share of a limit (${default})."`
	Rows     int            `default:"20" placeholder:"N" help:"Show at most N rows (${default})."`
	Watch    bool           `help:"Read the table again and again, until Ctrl-C."`
	Every    *time.Duration `placeholder:"TIME" help:"How long --watch waits after it has read the table (10s)."`
	JSON     bool           `name:"json" help:"Print one line of JSON for each time that the table is read."`
	yesFlag
	tableFlags
}

// Help returns the text below the command's flags.
func (topCommand) Help() string {
	return `This reads the whole table. It states the cost first and asks.
The table does not tell a user's tier. So limits are those without a tier, unless
one was granted, and a user of a higher tier can have used more than the limit.
Examples:
  guards top
  guards top --activity create_post --near 50
  guards top --watch --every 30s --yes
  guards top --yes --json`
}

// Run shows who is at or near a limit.
func (c *topCommand) Run(ctx context.Context, con console) error {
	if err := c.validate(con); err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.agree(ctx, con, store); err != nil {
		return err
	}
	if !c.Watch {
		found, err := c.read(ctx, con, store)
		if err == nil {
			return found.print(con, c)
		}
		if ctx.Err() != nil {
			con.note(fmt.Sprintf("stopped before the end, after %s for %s", several(found.Items, "item"), units(found.Units)))
		}
		return err
	}
	return c.watch(ctx, con, store)
}

func (c *topCommand) validate(con console) error {
	switch {
	case c.Near < 1 || c.Near > 100:
		return input.Invalid("--near", fmt.Sprint(c.Near), "1 to 100 percent")
	case c.Rows < 1 || c.Rows > 10_000:
		return input.Invalid("--rows", fmt.Sprint(c.Rows), "1 to 10000")
	case c.Every != nil && !c.Watch:
		return errors.New("--every goes with --watch")
	case c.every() < time.Second:
		return input.Invalid("--every", c.every().String(), "at least 1s")
	case c.Activity != "":
		_, _, err := con.find(c.Activity)
		return err
	}
	return nil
}

// every returns how long to wait between two readings.
func (c *topCommand) every() time.Duration {
	if c.Every == nil {
		return 10 * time.Second
	}
	return *c.Every
}

// agree states what the scan costs, and asks unless --yes is given.
func (c *topCommand) agree(ctx context.Context, con console, s store) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cost, err := s.dynamo.Estimate(within)
	size := fmt.Sprintf("about %s for %s", several(cost.Items, "item"), units(cost.Units))
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "AccessDeniedException" {
		size, err = "a number of items that is unknown without dynamodb:DescribeTable", nil
	}
	if err != nil {
		return input.NewUnavailable(err)
	}
	if c.Watch {
		size += ", every " + wait(c.every())
	}
	if c.Yes {
		con.note(fmt.Sprintf("this reads all of %s: %s", c.where(), size))
		return nil
	}
	return c.confirm(ctx, con, fmt.Sprintf("Read all of %s, %s?", c.where(), size), "")
}

// watch reads and prints until ctx ends.
func (c *topCommand) watch(ctx context.Context, con console, s store) error {
	var total table.Cost
	times := int64(0)
	for {
		found, err := c.read(ctx, con, s)
		total.Units += found.Units
		if err == nil {
			times++
			if con.screen && !c.JSON {
				_, _ = fmt.Fprint(con.out, clearScreen)
			}
			err = found.print(con, c)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(c.every()):
		case <-ctx.Done():
			con.note(fmt.Sprintf("stopped after the table was read %s for %s", several(times, "time"), units(total.Units)))
			return errInterrupted
		}
	}
}

// read reads the table once.
func (c *topCommand) read(ctx context.Context, con console, s store) (ranking, error) {
	changed, err := con.follow(ctx, s.live)
	if err != nil {
		return ranking{}, err
	}
	r := ranking{tableName: c.named(), guards: con.guards, At: con.now().UTC(), Near: c.Near, Users: []ranked{}, rows: c.Rows, only: c.Activity, changed: changed.Limits()}
	cost, err := s.dynamo.Items(ctx, func(k ratelimit.Key, item ratelimit.Item) {
		r.add(k, item)
		if r.seen++; r.seen%1000 == 0 {
			con.tell(several(r.seen, "item"))
		}
	})
	con.told()
	r.end()
	r.Items, r.Units = cost.Items, cost.Units
	if err != nil {
		return r, input.NewUnavailable(err)
	}
	return r, nil
}
