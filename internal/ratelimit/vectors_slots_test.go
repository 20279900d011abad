package ratelimit_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A slotVector is a log and what a model of it answered, step by step: checks that take
// slots, renewals that keep them, and releases that free them. Slots has the numbers of
// the log; an action takes as many slots as its cost.
type slotVector struct {
	Slots struct{ Limit, WindowMs, Cost int64 } `json:"slots"`
	Steps []slotStep                            `json:"steps"`
}

type slotStep struct {
	Now   int64      `json:"now"`
	Op    Op         `json:"op"`
	ID    string     `json:"id"`
	Count int64      `json:"count"`
	At    int64      `json:"at,omitempty"` // renew, release: the receipt, which can be an old one
	Want  slotAnswer `json:"want"`
}

type slotAnswer struct {
	Allowed   bool   `json:"allowed"`
	Reason    Reason `json:"reason"`
	Granted   int64  `json:"granted"`
	At        int64  `json:"at,omitempty"`
	HeldUntil int64  `json:"heldUntil,omitempty"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	WaitTime  int64  `json:"waitTime"`
	ResetAt   int64  `json:"resetAt"`
}

func (v slotVector) run(t *testing.T, store Store, user string) {
	t.Helper()
	text := fmt.Sprintf("log %d/%dms cost %d", v.Slots.Limit, v.Slots.WindowMs, v.Slots.Cost)
	p, c := policy.Must(text), new(clock)
	l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}
	for i, step := range v.Steps {
		c.unix.Store(time.UnixMilli(step.Now).UnixNano())
		d := mustDo(t, l, step.Op, Request{UserID: user, Activity: "act", Policy: p, Count: step.Count, ID: step.ID, At: step.At})
		got := slotAnswer{d.Allowed, d.Reason, d.Granted, d.At, 0, d.Used, d.Remaining, d.Wait.Milliseconds(), d.ResetAt}
		if d.At != 0 {
			got.HeldUntil = p.HeldUntil(d.At)
		}
		if diff := gocmp.Diff(step.Want, got); diff != "" {
			t.Fatalf("%s, step %d, %s of %d for %s with %d at %d (-want +got):\n%s", text, i, step.Op, step.Count, step.ID, step.At, step.Now, diff)
		}
	}
}

// A holder is a check that was counted, in the model.
type holder struct {
	id        string
	count, at int64
	older     int64 // the receipt before the last renewal; 0: none
	left      bool  // it gave back a part, so its receipt is used up
}

// A slotModel is a log as the contract describes it: a list of holders, each of which
// counts from at to just before at + window. It knows no slots, ids or updates.
type slotModel struct {
	limit, window, cost int64
	holders             []holder
}

// figures returns the answer's figures at now. Need is how many more actions shall fit.
func (m *slotModel) figures(now, need int64) (a slotAnswer) {
	m.holders = slices.DeleteFunc(m.holders, func(h holder) bool { return h.count == 0 || h.at+m.window <= now })
	slices.SortStableFunc(m.holders, func(a, b holder) int { return cmp.Compare(a.at, b.at) })
	units := int64(0)
	a.ResetAt = now
	for _, h := range m.holders {
		units += h.count * m.cost
		a.ResetAt = h.at + m.window
	}
	a.Used, a.Remaining = units/m.cost, (m.limit-units)/m.cost
	for _, h := range m.holders {
		if need*m.cost <= m.limit-units {
			break
		}
		units -= h.count * m.cost
		a.WaitTime = h.at + m.window - now
	}
	return a
}

// holder returns the check with this id, if it still counts.
func (m *slotModel) holder(id string) *holder {
	i := slices.IndexFunc(m.holders, func(h holder) bool { return h.id == id && !h.left })
	if i < 0 {
		return nil
	}
	return &m.holders[i]
}

// answer decides a step.
func (m *slotModel) answer(s slotStep) slotAnswer {
	a := m.figures(s.Now, s.Count)
	fits, h := a.WaitTime == 0, m.holder(s.ID)
	known := h != nil && (s.At == h.at || s.At == h.older && s.Now-h.at <= 20_000) // an older receipt works for 20 s
	allowed, at, reason := true, int64(0), OK
	switch {
	case s.Op == Check && fits:
		m.holders = append(m.holders, holder{id: s.ID, count: s.Count, at: s.Now})
		at = s.Now
	case s.Op == Check || s.Op == Status:
		allowed = fits
	case s.Op == Release && known:
		h.count, h.left = h.count-s.Count, true
	case s.Op == Renew && known:
		if s.At == h.at {
			h.older, h.at = h.at, s.Now
		}
		at = h.at
	case s.Op == Renew:
		allowed, reason = false, Expired
	}
	if allowed || s.Op == Renew {
		a = m.figures(s.Now, 0)
		a.Granted = s.Count
	} else {
		reason = Limited
	}
	if reason == Expired {
		a.Granted = 0
	}
	a.Allowed, a.Reason, a.At = allowed, reason, at
	if at != 0 {
		a.HeldUntil = at + m.window
	}
	return a
}

// makeSlotVectors lets the model answer steps that are drawn at random. No two steps
// come at the same time, because a log can't tell slots of one millisecond apart.
func makeSlotVectors() (cases []slotVector) {
	for i, numbers := range [][3]int64{
		{3, 600_000, 1}, {1, 5_000, 1}, {100, 43_200_000, 1}, {12, 60_000, 4}, {9, 26_000, 2}, {20, 30_000, 1}, {3, 6_000, 1}, {50, 120_000, 7},
	} {
		random := rand.New(rand.NewPCG(uint64(i), 31))
		m := &slotModel{limit: numbers[0], window: numbers[1], cost: numbers[2]}
		var v slotVector
		v.Slots.Limit, v.Slots.WindowMs, v.Slots.Cost = m.limit, m.window, m.cost
		now := int64(1_700_000_000_000) + random.Int64N(m.window)
		gone := holder{id: "none", at: now, count: 1} // the last one that was released or expired
		for n := range 60 {
			now += m.pause(random, now)
			s := slotStep{Now: now, ID: strconv.Itoa(n), Count: 1 + random.Int64N(max(1, min(3, m.limit/m.cost)))}
			s.Op = []Op{Check, Check, Renew, Renew, Renew, Release, Status}[random.IntN(7)]
			if s.Op == Renew || s.Op == Release {
				m.choose(random, &s, gone)
			}
			if h := m.holder(s.ID); h != nil {
				gone = *h
			}
			s.Want = m.answer(s)
			v.Steps = append(v.Steps, s)
		}
		cases = append(cases, v)
	}
	return cases
}

// pause draws the time until the next step: often the first or the last millisecond of
// a holder.
func (m *slotModel) pause(random *rand.Rand, now int64) int64 {
	if len(m.holders) > 0 && random.IntN(4) == 0 {
		h := m.holders[random.IntN(len(m.holders))]
		return max(1, h.at+m.window-random.Int64N(2)-now)
	}
	return 1 + []int64{0, 700, 2_500, 9_000, m.window / 7, m.window / 3}[random.IntN(6)]
}

// choose draws whom a renewal or a release names, and with which receipt. From 20 to
// 28 s after a renewal an older receipt may work or not, so none is used then.
func (m *slotModel) choose(random *rand.Rand, s *slotStep, gone holder) {
	h := gone
	if len(m.holders) > 0 && random.IntN(5) > 0 {
		h = m.holders[random.IntN(len(m.holders))]
	}
	s.ID, s.Count, s.At = h.id, h.count, h.at
	age := s.Now - h.at
	if h.older != 0 && !h.left && random.IntN(3) == 0 && (age <= 20_000 || age > 28_000) {
		s.At = h.older
	}
	if h.left { // what a release in part left behind can't be named safely
		s.ID, s.At = "none", s.Now
	}
	if s.Op == Release {
		s.Count = 1 + random.Int64N(h.count)
	}
}

const slotFile = "testdata/vectors/next/slots.json"

// The file has what the model answers. UPDATE=1 writes it.
func TestVectorsOfSlotsAreTheModels(t *testing.T) {
	want, err := json.Marshal(makeSlotVectors())
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(slotFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(slotFile); err != nil || string(got) != string(want) {
		t.Errorf("%s is not what the model answers (%v): run this test with UPDATE=1", slotFile, err)
	}
}
