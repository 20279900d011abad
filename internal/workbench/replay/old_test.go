package replay_test

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
)

// The age of the traffic does not matter. It has 3 requests in 1970, one a day
// later, and one in 2010.
func TestOldTraffic(t *testing.T) {
	old := "time,user,activity\n" + strings.Repeat("0,u1,act\n", 3) + "86400000,u1,act\n" + "1262304000000,u1,act\n"
	for _, k := range policy.Kinds() {
		if _, got := run(t, policy.Must(k.Name+" 2/1h"), old); got.Allowed != 4 || got.Refused+got.Delayed != 1 {
			t.Errorf("%s: %d of 5 allowed, want 4", k.Name, got.Allowed)
		}
	}
}

// The requests are on both sides of midnight, 1 January 2010 in UTC.
func TestSeveralLimitsOnOldTraffic(t *testing.T) {
	old := "time,user,activity\n" + strings.Repeat("1262303999000,u1,act\n", 3) + strings.Repeat("1262304000000,u1,act\n", 3)
	if _, got := run(t, policy.Must("log: log 4/1h, day: 2/1d"), old); got.Allowed != 4 || got.LongestWaitMs != 24*3600*1000 {
		t.Errorf("%+v, want 2 of each day allowed", got)
	}
}
