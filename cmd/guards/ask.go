package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

// questionFlags belong to commands that ask before they delete. Some of these
// commands can also show what they would delete.
type questionFlags struct {
	Yes    bool `short:"y" help:"Delete without asking."`
	DryRun bool `help:"Delete nothing. Show how much would be deleted."`
}

// confirm asks the question, unless --yes or --dry-run answers it. It returns
// nil if the answer is yes. It stops waiting for the answer when ctx ends.
func (f *questionFlags) confirm(ctx context.Context, con console, question string) error {
	if f.Yes || f.DryRun {
		return nil
	}
	if con.in == nil {
		return errors.New("there is nobody to ask: give --yes to delete, or --dry-run to see what would be deleted")
	}
	_, _ = fmt.Fprintf(con.err, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(con.in).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		_, _ = fmt.Fprintln(con.err)
		return errInterrupted
	}
}
