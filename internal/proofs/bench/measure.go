//go:build unix

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/testkit"
)

// Run runs the measurements with these names, or all that need no other project,
// and saves their results. It returns an error if one fails or misses a goal.
func Run(ctx context.Context, names []string) error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	var parts []Part
	for _, name := range names {
		p, err := find(name)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	if len(names) == 0 {
		parts = slices.DeleteFunc(slices.Clone(Parts), func(p Part) bool { return p.Peers })
	}
	return test(ctx, root, folder(root), parts, os.Stdout)
}

// test runs parts with the code in root, and saves their results in to.
func test(ctx context.Context, root, to string, parts []Part, out io.Writer) error {
	var tests []string
	for _, p := range parts {
		tests = append(tests, p.Test)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return command(ctx, root, out, []string{"BENCH=" + to}, "scripts/with-dynamodb",
		"go", "test", "-count=1", "-v", "-timeout=2h", "-run=^("+strings.Join(tests, "|")+")$", "./internal/proofs/bench")
}

func command(ctx context.Context, folder string, out io.Writer, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, out
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the script stops its server
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
