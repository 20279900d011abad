//go:build unix

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit"
)

const (
	checkRounds = 3
	worst       = 1.1 // times the figure at the merge base
)

// Check measures this code and its merge base with a branch, in turns. It prints
// the goals of both. It returns an error if this code misses a goal by more than
// the spread, or if a figure is more than a tenth worse than at the merge base.
func Check(ctx context.Context, branch string) error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	var base strings.Builder
	if err := findings.Run(ctx, root, &base, nil, "git", "merge-base", "HEAD", branch); err != nil {
		return errors.New(strings.TrimSpace(base.String()))
	}
	work, err := os.MkdirTemp("", "bench-check-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	old := filepath.Join(work, "base")
	if err := findings.Run(ctx, root, os.Stderr, nil, "git", "worktree", "add", "--quiet", "--detach", old, strings.TrimSpace(base.String())); err != nil {
		return err
	}
	defer func() {
		_ = findings.Run(context.WithoutCancel(ctx), root, os.Stderr, nil, "git", "worktree", "remove", "--force", old)
	}()
	if err := os.Symlink(filepath.Join(root, ".cache"), filepath.Join(old, ".cache")); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(old, "internal", "proofs", "bench", "bench.go")); err != nil {
		return errors.New("the merge base has no measurements: choose a later one")
	}
	var now, then []map[string]findings.Goal
	for round := range checkRounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, checkRounds)
		for _, side := range []struct {
			root string
			all  *[]map[string]findings.Goal
		}{{root, &now}, {old, &then}} {
			goals, err := checked(ctx, side.root, filepath.Join(work, "results"))
			if err != nil {
				return err
			}
			*side.all = append(*side.all, goals)
		}
	}
	return compare(os.Stdout, now, then)
}

// checked measures the code in root and returns its goals by their names.
func checked(ctx context.Context, root, to string) (map[string]findings.Goal, error) {
	parts := slices.DeleteFunc(slices.Clone(Parts), func(p Part) bool { return !p.Checked })
	var out strings.Builder
	missed := test(ctx, root, to, parts, &out) // compare looks at the goals
	goals := make(map[string]findings.Goal)
	for _, p := range parts {
		list, err := findings.Goals(to, p.Name)
		if err != nil {
			return nil, errors.Join(err, missed, errors.New(out.String()))
		}
		for _, g := range list {
			goals[g.What] = g
		}
	}
	return goals, os.RemoveAll(to)
}

// compare prints each goal with its figures now and then. It returns an error if
// one is missed or has become worse.
func compare(out io.Writer, now, then []map[string]findings.Goal) error {
	var failed error
	for _, name := range slices.Sorted(maps.Keys(now[0])) {
		own := middle(now, name)
		line := own.String()
		if !own.Reached() {
			failed = errors.Join(failed, fmt.Errorf("%s: %s is above the goal", name, own.Spread))
		}
		if _, known := then[0][name]; known {
			before := middle(then, name)
			line += fmt.Sprintf(", merge base: %s", before.Spread)
			if own.Median > worst*before.Median {
				failed = errors.Join(failed, fmt.Errorf("%s: %s is more than a tenth above %s", name, own.Spread, before.Spread))
			}
		}
		_, _ = fmt.Fprintln(out, line)
	}
	return failed
}

// middle returns the goal of the round with the median figure.
func middle(rounds []map[string]findings.Goal, name string) findings.Goal {
	list := make([]findings.Goal, 0, len(rounds))
	for _, goals := range rounds {
		list = append(list, goals[name])
	}
	slices.SortFunc(list, func(a, b findings.Goal) int { return cmp.Compare(a.Median, b.Median) })
	return list[len(list)/2]
}
