package command

import (
	"context"
	"errors"
	"os"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/plot"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// plot replays the requests of one user again and draws them.
func (c *replayCommand) plot(ctx context.Context, con console, r *replay.Replay, t *traffic.Reader, reports []*replay.Report, others []policy.Policy) error {
	timelines, err := r.Timelines(ctx, t, reports, c.User, others...)
	con.told()
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
