package liveedit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/testkit"
)

var blockTime = time.UnixMilli(1_700_000_000_000).UTC()

// block blocks a user for a day.
func (t *table) block(tb testing.TB, b live.Block) error {
	tb.Helper()
	if b.Reason == "" {
		b.Reason = "spam"
	}
	if b.Until.IsZero() {
		b.Until = blockTime.AddDate(0, 0, 1)
	}
	return Block(tb.Context(), t, Change{At: blockTime, By: "op"}, b)
}

// inForce returns who is blocked from what after a time.
func (t *table) inForce(tb testing.TB, after time.Duration) string {
	tb.Helper()
	all, _, err := ReadBlocks(tb.Context(), t)
	testkit.OK(tb, err)
	var who []string
	for _, b := range BlocksAt(all, blockTime.Add(after)) {
		who = append(who, strings.TrimSpace(b.UserID+" "+b.Activity))
	}
	return strings.Join(who, ", ")
}

func TestBlocksAreEdited(t *testing.T) {
	table := &table{}
	for _, b := range []live.Block{{UserID: "u1"}, {UserID: "u1", Activity: "pin"}, {UserID: " room r1", Until: blockTime.Add(time.Hour)}, {UserID: "u1", Activity: "pin", Reason: "again"}} {
		testkit.OK(t, table.block(t, b))
	}
	if got := table.inForce(t, 0); got != "room r1, u1, u1 pin" {
		t.Errorf("blocked: %s", got)
	}
	if got := table.inForce(t, time.Hour); got != "u1, u1 pin" {
		t.Errorf("blocked after an hour: %s", got)
	}
	// Two operators change the blocks at the same time: both changes count.
	table.race = func() {
		if err := table.block(t, live.Block{UserID: "u2"}); err != nil {
			t.Error(err)
		}
	}
	lifted, err := Unblock(t.Context(), table, Change{At: blockTime, By: "op"}, "u1", "pin")
	if err != nil || len(lifted) != 1 || lifted[0].Reason != "again" || lifted[0].Set.By != "op" {
		t.Errorf("lifted %+v, %v", lifted, err)
	}
	if got := table.inForce(t, 0); got != "room r1, u1, u2" {
		t.Errorf("blocked: %s", got)
	}
	changes := len(table.history)
	if lifted, err := Unblock(t.Context(), table, Change{At: blockTime, By: "op"}, "u1", "pin"); err != nil || len(lifted) > 0 || len(table.history) != changes {
		t.Errorf("again: %+v, %v, want nothing", lifted, err)
	}
	for _, c := range table.history {
		if strings.Contains(fmt.Sprint(c), "u1") || strings.Contains(fmt.Sprint(c), "r1") {
			t.Errorf("the history names somebody: %+v", c)
		}
	}
	for says, b := range map[string]live.Block{
		"userId": {UserID: "u 1"}, "userId is missing": {UserID: " room "}, "U+0020": {UserID: " config"},
		"61 bytes, want 1 to 60": {UserID: "u1", Reason: strings.Repeat("x", 61)},
	} {
		if err := table.block(t, b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", b, err, says)
		}
	}
}

// There is room for 1,000 blocks with short texts, and for 200 KB of long ones. Blocks
// that have ended give way to new ones, and a block can always be lifted.
func TestBlocksHaveBounds(t *testing.T) {
	for says, id := range map[string]string{"1001 blocks, want at most 1000": "u%d", "KB, want at most 200": strings.Repeat("u", 120) + "%d"} {
		table, all, n := &table{}, live.Blocks{}, 0
		of := func(n int) live.Block {
			return live.Block{UserID: fmt.Sprintf(id, n), Until: blockTime.Add(time.Hour), Reason: "spam", Set: live.Stamp{Since: blockTime, By: "op"}}
		}
		one, _ := live.Blocks{All: []live.Block{of(999)}}.Stored(1)
		for ; n < 990 && n*len(one.Document) < 190_000; n++ { // the first ones by hand
			all.All = append(all.All, of(n))
		}
		table.blocks, _ = all.Stored(1)
		err := error(nil)
		for ; err == nil; n++ {
			err = table.block(t, live.Block{UserID: fmt.Sprintf(id, n), Until: blockTime.Add(time.Hour)})
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("block %d: %v, want an error that says %s", n, err, says)
		}
		if lifted, err := Unblock(t.Context(), table, Change{At: blockTime, By: "op"}, fmt.Sprintf(id, 5), ""); err != nil || len(lifted) != 1 {
			t.Errorf("lifted %+v, %v", lifted, err)
		}
		late := Change{At: blockTime.Add(time.Hour), By: "op"}
		if err := Block(t.Context(), table, late, live.Block{UserID: "late", Until: blockTime.AddDate(0, 0, 1), Reason: "spam"}); err != nil || table.inForce(t, time.Hour) != "late" {
			t.Errorf("after an hour: %v, %s", err, table.inForce(t, time.Hour))
		}
	}
}

// A block that replaces another one can take more room, which is bounded, too.
func TestALongerBlockIsBounded(t *testing.T) {
	table, all := &table{}, live.Blocks{}
	for i := range 999 {
		all.All = append(all.All, live.Block{UserID: fmt.Sprintf("u%0120d", i), Until: blockTime.AddDate(0, 0, 1), Reason: "r"})
	}
	fill := func() {
		var err error
		if table.blocks, err = all.Stored(1); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	for i := range (199_990 - len(table.blocks.Document)) / 59 { // until hardly anything more fits
		all.All[i].Reason = strings.Repeat("r", 60)
	}
	fill()
	longer := live.Block{UserID: all.All[998].UserID, Reason: strings.Repeat("\x01", 60)} // JSON needs 6 bytes for each of these
	if err := table.block(t, longer); err == nil || !strings.Contains(err.Error(), "want at most 200") {
		t.Errorf("%v, and the blocks take %d bytes, want an error", err, len(table.blocks.Document))
	}
	if _, err := Unblock(t.Context(), table, Change{At: blockTime, By: "op"}, longer.UserID, ""); err != nil {
		t.Error(err)
	}
}

// After an erasure, no block has the id any more, also none that has ended.
func TestAnErasureForgetsBlocksThatHaveEnded(t *testing.T) {
	table := &table{}
	for _, b := range []live.Block{{UserID: "u17", Until: blockTime.Add(time.Minute)}, {UserID: "u2"}} {
		testkit.OK(t, table.block(t, b))
	}
	later := blockTime.Add(time.Hour)
	if lifted, err := Unblock(t.Context(), table, Change{At: later, By: "op"}, "u17", ""); err != nil || len(lifted) > 0 || len(table.history) != 2 {
		t.Errorf("unblock lifts %v, %v, want nothing", lifted, err)
	}
	testkit.OK(t, ForgetBlocks(t.Context(), table, "u17", later))
	if strings.Contains(string(table.blocks.Document), "u17") || table.inForce(t, time.Hour) != "u2" {
		t.Errorf("after the erasure: %s", table.blocks.Document)
	}
}
