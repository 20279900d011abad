package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// writeSources writes how the files were read, and how to read them otherwise.
func writeSources(b *strings.Builder, all []traffic.Source) {
	for _, s := range all {
		if s.Format != "" {
			fmt.Fprintf(b, "\nread as %s", s.Format)
			if s.User != "" {
				users := strings.ReplaceAll(s.User, ", ", ", or else ")
				if s.Address {
					users += ", an address"
				}
				fmt.Fprintf(b, "; the user is %s; --columns user=NAME names another field", users)
			}
			b.WriteByte('\n')
		}
		switch s.Zone {
		case "":
		case time.UTC.String():
			b.WriteString("\ntimes without a zone are UTC; --zone Europe/Berlin reads them in another zone\n")
		default:
			fmt.Fprintf(b, "\ntimes without a zone are those of %s\n", s.Zone)
		}
		if s.Backwards {
			b.WriteString("\nread from its end, because the file runs backwards\n")
		}
	}
}

// explain tells how to go on after a line that is no request.
func (c *replayCommand) explain(err error) error {
	if _, ok := errors.AsType[*traffic.BadLine](err); ok {
		return hint{err, "--skip-bad goes on without such lines and counts them"}
	}
	return err
}
