package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

// yesFlag belongs to commands that ask before they act.
type yesFlag struct {
	Yes bool `short:"y" help:"Do not ask."`
}

// confirm asks the question, unless --yes answers it. It returns nil if the
// answer is yes. It stops waiting for the answer when ctx ends. If no person
// can answer, the error suggests --yes and ends with the text of instead.
func (f yesFlag) confirm(ctx context.Context, env session, question, instead string) error {
	if f.Yes {
		return nil
	}
	if env.in == nil {
		return errors.New("there is nobody to ask: give --yes to go ahead" + instead)
	}
	_, _ = fmt.Fprintf(env.err, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(env.in).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		_, _ = fmt.Fprintln(env.err)
		return errInterrupted
	}
}
