package traffic

import (
	"cmp"
	"strings"

	"github.com/cric-talk/guards/internal/input"
)

// Columns are the names of the fields in the files. An empty name is the usual
// one: time, user or activity. In JSON, a dot in a name leads into an object:
// request.user is the field user of the object request.
type Columns struct{ Time, User, Activity string }

const wantColumns = "time=NAME, user=NAME and activity=NAME, separated by commas"

// ParseColumns reads names such as time=ts,user=account_id.
func ParseColumns(text string) (c Columns, err error) {
	for part := range strings.SplitSeq(text, ",") {
		field, name, ok := strings.Cut(strings.TrimSpace(part), "=")
		to := map[string]*string{"time": &c.Time, "user": &c.User, "activity": &c.Activity}[field]
		if !ok || to == nil || name == "" || *to != "" {
			return c, input.Invalid("--columns", input.Show(text), wantColumns)
		}
		*to = name
	}
	return c, nil
}

func (c Columns) time() string     { return cmp.Or(c.Time, "time") }
func (c Columns) user() string     { return cmp.Or(c.User, "user") }
func (c Columns) activity() string { return cmp.Or(c.Activity, "activity") }

// header describes the columns that a file of CSV must have, for an error.
func (c Columns) header(optional bool) string {
	if optional && c.Activity == "" {
		return c.time() + " and " + c.user() + "; --columns time=NAME,user=NAME names others"
	}
	return c.time() + ", " + c.user() + " and " + c.activity() + "; --columns time=NAME,user=NAME names others"
}
