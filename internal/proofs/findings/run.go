package findings

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Run runs a command in a folder, with these variables in its environment too. If ctx is
// done, the command is interrupted, so that a script stops its server.
func Run(ctx context.Context, folder string, out io.Writer, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, out
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
