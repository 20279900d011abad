package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A serveLog writes a line about each invocation. It is safe for concurrent
// use.
type serveLog struct {
	con    console
	json   bool // one line of JSON on standard output; otherwise a line for people
	mu     sync.Mutex
	served int64 // requests so far
}

// A served is an invocation as JSON.
type served struct {
	At       time.Time       `json:"at"`
	Function string          `json:"function"`
	Status   int             `json:"status,omitzero"` // over HTTP, or if no function ran
	Answer   json.RawMessage `json:"answer,omitzero"`
	Error    string          `json:"error,omitzero"`
}

// observe writes the line.
func (l *serveLog) observe(i invokeapi.Invocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served++
	s := l.read(i)
	if l.json {
		_ = l.con.printLine(s)
		return
	}
	_, _ = fmt.Fprintf(l.con.err, "%s  %-18s  %s\n", s.At.Format(time.TimeOnly), s.Function, l.con.words(s))
}

// count returns the number of requests so far.
func (l *serveLog) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.served
}

// read returns what an invocation came to. It takes the answer or the error out
// of the response that a Function URL sends.
func (l *serveLog) read(i invokeapi.Invocation) served {
	s := served{At: l.con.now().UTC(), Function: i.Function, Status: i.Status, Answer: i.Payload}
	if strings.ContainsFunc(s.Function, func(c rune) bool { return c <= ' ' || c > '~' }) {
		s.Function = input.Show(s.Function) // the caller can send anything
	}
	if i.Err != nil {
		s.Answer, s.Error = nil, i.Err.Error()
		return s
	}
	var response struct {
		StatusCode int
		Body       string
	}
	if json.Unmarshal(i.Payload, &response) != nil || response.StatusCode == 0 {
		return s
	}
	s.Status, s.Answer = response.StatusCode, json.RawMessage(response.Body)
	var problem struct{ Reason, Title, Detail string }
	if json.Unmarshal(s.Answer, &problem) == nil && problem.Reason == "" { // not an answer of the guard
		s.Answer, s.Error = nil, cmp.Or(problem.Detail, problem.Title)
	}
	return s
}

// words returns an invocation for people.
func (c console) words(s served) string {
	if s.Error != "" {
		status := ""
		if s.Status != 0 {
			status = fmt.Sprintf(" %d", s.Status)
		}
		return c.paint(red, "error"+status) + " " + visible(s.Error)
	}
	var a struct {
		Activity, Op, Reason string
		Allowed              bool
		ActivityCount, Limit int64
		WaitTime             int64
	}
	if json.Unmarshal(s.Answer, &a) != nil || a.Reason == "" {
		return strings.TrimSpace(string(s.Answer)) // cleanup's
	}
	text := fmt.Sprintf("%s %s: %s, %s", a.Op, a.Activity, c.verdict(a.Allowed, a.Reason), a.Reason)
	if a.Limit > 0 {
		text += fmt.Sprintf(", %d/%d used", a.ActivityCount, a.Limit)
	}
	if a.WaitTime > 0 {
		text += ", wait " + waitMs(a.WaitTime)
	}
	return text
}
