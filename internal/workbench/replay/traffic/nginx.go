package traffic

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cric-talk/guards/internal/input"
)

// nginxFile finds the fields of a request in a line of nginx's format
// "combined", which Apache writes too:
//
//	192.0.2.7 - alice [05/Jan/2026:12:00:00 +0000] "POST /posts?draft=1 HTTP/1.1" 201 93 "-" "curl/8.5.0"
//
// The user is remote_user, here alice, or remote_addr if remote_user is "-".
type nginxFile struct {
	user     string // remote_addr or remote_user; empty: the first of them that is known
	activity bool   // the activity is the method and the path, such as POST /posts
	buffer   []byte
}

func newNginx(c Columns) (*nginxFile, error) {
	f := &nginxFile{user: c.User, activity: c.Activity == "request"}
	switch {
	case c.Time != "" && c.Time != "time_local":
		return nil, input.Invalid("--columns time", input.Show(c.Time), "time_local")
	case c.User != "" && c.User != "remote_addr" && c.User != "remote_user":
		return nil, input.Invalid("--columns user", input.Show(c.User), "remote_addr or remote_user")
	case c.Activity != "" && !f.activity:
		return nil, input.Invalid("--columns activity", input.Show(c.Activity), "request, which is the method and the path")
	}
	return f, nil
}

var errNginx = errors.New(`it is not a line of the format combined, such as 192.0.2.7 - alice [05/Jan/2026:12:00:00 +0000] "POST /posts HTTP/1.1" 201 93`)

// parse implements [parser].
func (f *nginxFile) parse(record []byte) (found fields, err error) {
	address, rest, ok := bytes.Cut(record, []byte(" "))
	_, rest, ok2 := bytes.Cut(rest, []byte(" ")) // the client's identity, which is always -
	name, rest, ok3 := bytes.Cut(rest, []byte(" ["))
	at, rest, ok4 := bytes.Cut(rest, []byte(`] "`))
	if !ok || !ok2 || !ok3 || !ok4 {
		return found, errNginx
	}
	unknown := string(name) == "-"
	found.time, found.user, found.noActivity = at, name, !f.activity
	switch {
	case f.user == "remote_addr", f.user == "" && unknown:
		found.user = address
	case unknown:
		return found, fmt.Errorf("remote_user is -, want the name of a user; without --columns user=remote_user, the address counts as the user")
	}
	if f.activity {
		if found.activity, ok = f.request(rest); !ok {
			return found, errNginx
		}
	}
	return found, nil
}

// request returns the method and the path of a quoted request. It returns a
// request that is no HTTP as it is, and - for an empty one, which nginx logs if
// a client sends nothing.
func (f *nginxFile) request(text []byte) ([]byte, bool) {
	text, _, ok := bytes.Cut(text, []byte(`" `))
	if len(text) == 0 {
		return []byte("-"), ok
	}
	parts := bytes.Split(text, []byte(" "))
	if len(parts) != 3 {
		return text, ok
	}
	path, _, _ := bytes.Cut(parts[1], []byte("?"))
	f.buffer = append(append(append(f.buffer[:0], parts[0]...), ' '), path...)
	return f.buffer, ok
}
