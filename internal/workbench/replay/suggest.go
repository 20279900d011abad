package replay

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A Suggestion is the lowest limit that leaves enough users untouched: none of
// their requests is refused or delayed.
type Suggestion struct {
	Activity string  `json:"activity"`
	Policy   string  `json:"policy"` // its text form
	Limit    int64   `json:"limit"`
	Exact    bool    `json:"exact,omitempty"` // the limit is prepaid, and each request was decided exactly, without leases
	Wanted   float64 `json:"wantedShare"`     // of the users, 0 to 1
	Share    float64 `json:"share"`           // that the limit leaves untouched, rounded down
	Requests int64   `json:"requests"`
	Users    int64   `json:"users"`
	HeldUp   int64   `json:"heldUpUsers"`

	Sources  []traffic.Source `json:"sources,omitempty"` // how the files were read
	BadLines int64            `json:"badLines"`
	FirstBad []string         `json:"firstBadLines,omitempty"`

	Interrupted bool `json:"interrupted,omitempty"` // a lower limit may be enough
}

// Suggest searches for the lowest limit of the kind and the window of r.Policy
// that leaves a share of the users untouched. It reads t once and then its copy
// in file, which must be empty. Trying, if set, is called before each trial.
//
// If ctx ends during the search, Suggest returns its error and the lowest limit
// that is known to be enough. Any other error comes without a suggestion.
func (r *Replay) Suggest(ctx context.Context, t *traffic.Reader, share Share, file io.ReadWriteSeeker, trying func(policy.Policy)) (*Suggestion, error) {
	if len(r.Policy.Rates()) != 1 {
		return nil, errors.New("a suggestion needs a single limit, such as 20/1m")
	}
	to := &spool{file: file, w: bufio.NewWriterSize(file, 1<<16), numbers: make(map[string]int)}
	s := &search{spool: to, trying: trying}
	if _, err := r.eachOf(ctx, t, []string{r.Activity}, s.spool.add); err != nil {
		return nil, err
	}
	if err := s.candidates(ctx, r.Policy); err != nil {
		return nil, err
	}
	s.settled = make([]bool, len(s.spool.users))
	users := int64(len(s.spool.users))
	found, err := s.lowest(ctx, users-share.of(users))
	if err != nil && (ctx.Err() == nil || found.IsZero()) {
		return nil, err
	}
	got := &Suggestion{
		Activity: r.Activity, Policy: found.String(), Limit: found.Rates()[0].Limit, Exact: found.Prepaid(),
		Wanted: float64(share) / whole, Share: float64((users-found.heldUp)*10_000/users) / 10_000,
		Users: users, HeldUp: found.heldUp, Sources: t.Sources(), BadLines: t.Bad, FirstBad: t.FirstBad, Interrupted: err != nil,
	}
	for _, n := range s.spool.requests {
		got.Requests += n
	}
	return got, err
}

// A search tries limits. It relies on a law of all kinds: if a limit leaves a
// user untouched, so does each higher one.
type search struct {
	spool  *spool
	limits []policy.Policy // from low to high
	trying func(policy.Policy)

	settled []bool // users who need no more trials
	heldUp  int64  // settled users, held up by each limit that is still in question
}

// A trial is a limit and the number of users that it holds up.
type trial struct {
	policy.Policy
	heldUp int64
}

// candidates lists the possible limits, up to the first one that holds up
// nobody, because it lets pass all requests of any user at once.
func (s *search) candidates(ctx context.Context, p policy.Policy) error {
	most := slices.Max(s.spool.requests)
	r, pass := p.Rates()[0], p.Quota().Limit
	// What passes at once grows at least in proportion to the limit. A kind can have
	// gaps between its limits, but none of them is above one action a millisecond.
	highest := max((most*r.Limit+pass-1)/pass, r.Window.Milliseconds())
	for n := range min(highest, 1_000_000) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		limit, err := WithLimit(p, n+1)
		if err != nil {
			continue // a bucket has no such limit, or the limit is too high
		}
		s.limits = append(s.limits, limit)
		if limit.Quota().Limit >= most {
			break
		}
	}
	if len(s.limits) == 0 {
		return fmt.Errorf("%s has no similar limits", p)
	}
	return nil
}

// WithLimit returns p, a single limit, with n actions in each window. A burst keeps its
// proportion, rounded up: bucket 10/1m burst 15 with 20 is bucket 20/1m burst 30. The
// error comes from [policy.Parse] if the kind has no such limit. For example, a bucket
// has a whole number of milliseconds between two actions, so it can't have the limit
// 7/1m. The limit has no max.
func WithLimit(p policy.Policy, n int64) (policy.Policy, error) {
	r := p.Rates()[0]
	n *= max(1, r.Cost)
	r.Limit, r.Burst, r.Max = n, (r.Burst*n+r.Limit-1)/r.Limit, 0
	return policy.Parse(r.String())
}

// lowest returns the lowest limit that holds up no more users than allowed.
func (s *search) lowest(ctx context.Context, allowed int64) (found trial, err error) {
	low, high := 0, len(s.limits)-1
	for next := high; low <= high; next = (low + high) / 2 {
		held, heldUp, err := s.try(ctx, s.limits[next])
		if err != nil {
			return found, err
		}
		enough := heldUp <= allowed
		switch {
		case enough:
			found = trial{s.limits[next], heldUp}
			high = next - 1
		case found.IsZero():
			return found, fmt.Errorf("even %s, the highest limit of this kind, holds up %d of %d users", s.limits[next], heldUp, len(s.spool.users))
		default:
			low = next + 1
		}
		// Users that this limit holds up are also held up by a lower one. Users
		// that it leaves alone are also left alone by a higher one.
		for user, settled := range s.settled {
			if !settled && held[user] == enough {
				s.settled[user] = true
				if enough {
					s.heldUp++
				}
			}
		}
	}
	return found, nil
}

var errEnough = errors.New("all users are settled")

// try returns the users that a limit holds up, and their number.
func (s *search) try(ctx context.Context, p policy.Policy) (held []bool, heldUp int64, err error) {
	held, heldUp = make([]bool, len(s.settled)), s.heldUp
	pass := p.Quota().Limit // this many requests of a user pass at any time
	left := 0
	open := make([]bool, len(held)) // users who may be held up and are not yet
	for user, n := range s.spool.requests {
		open[user] = !s.settled[user] && n > pass
		if open[user] {
			left++
		}
	}
	if left == 0 {
		return held, heldUp, nil
	}
	if s.trying != nil {
		s.trying(p)
	}
	d := newDecider(p, false)
	n := 0
	err = s.spool.each(func(user int, at int64) error {
		if n++; n%progressLines == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !open[user] || d.check(traffic.Line{Time: at, User: s.spool.users[user]}).Allowed {
			return nil
		}
		open[user], held[user] = false, true
		heldUp++
		if left--; left == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return held, heldUp, err
}

// A spool keeps requests outside of memory, so that they can be decided many
// times without parsing their files again. A request takes about 5 bytes: the
// user's number and the milliseconds since the request before it.
type spool struct {
	file   io.ReadWriteSeeker
	w      *bufio.Writer
	buffer []byte
	last   int64

	numbers  map[string]int
	users    []string
	requests []int64 // of each user
}

func (s *spool) add(line traffic.Line) error {
	n, ok := s.numbers[line.User]
	if !ok {
		n = len(s.users)
		s.numbers[line.User] = n
		s.users, s.requests = append(s.users, line.User), append(s.requests, 0)
	}
	s.requests[n]++
	s.buffer = binary.AppendVarint(binary.AppendUvarint(s.buffer[:0], uint64(n)), line.Time-s.last)
	s.last = line.Time
	_, err := s.w.Write(s.buffer)
	return err
}

// each reads all requests from the first one on, until do returns an error.
func (s *spool) each(do func(user int, at int64) error) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, at := bufio.NewReaderSize(s.file, 1<<16), int64(0)
	for {
		user, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		later, err2 := binary.ReadVarint(r)
		at += later
		if err = cmp.Or(err, err2); err == nil {
			err = do(int(user), at)
		}
		if err != nil {
			return err
		}
	}
}

// A Share is a part of a whole, in millionths: 999,000 is 99.9%.
type Share int64

const whole = 1_000_000

// ParseShare reads a share above 0 % and up to 100 %, with up to four decimals.
func ParseShare(text string) (Share, error) {
	digits, isPercent := strings.CutSuffix(text, "%")
	percent, fraction, _ := strings.Cut(strings.TrimSpace(digits), ".")
	n, err := strconv.ParseUint(percent+(fraction + "0000")[:4], 10, 32)
	if !isPercent || err != nil || len(fraction) > 4 || n < 1 || n > whole {
		return 0, input.Invalid("share", input.Show(text), "a percentage above 0% and up to 100%, such as 99.9%")
	}
	return Share(n), nil
}

// String returns the share as a percentage.
func (s Share) String() string {
	return strconv.FormatFloat(float64(s)*100/whole, 'f', -1, 64) + "%"
}

// of returns the share of n, rounded up.
func (s Share) of(n int64) int64 { return (n*int64(s) + whole - 1) / whole }
