package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// zones are 50 time zones of every kind. They have summer time or not, lie in both
// hemispheres, and differ by hours, half hours and quarter hours. Some changed their
// rules.
var zones = []string{
	"UTC", "Europe/London", "Europe/Berlin", "Europe/Dublin", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul", "Europe/Athens",
	"Africa/Cairo", "Africa/Casablanca", "Africa/Lagos", "Africa/Nairobi", "Africa/Johannesburg", "Asia/Kolkata", "Asia/Kathmandu",
	"Asia/Tehran", "Asia/Kabul", "Asia/Karachi", "Asia/Dhaka", "Asia/Yangon", "Asia/Bangkok", "Asia/Shanghai", "Asia/Tokyo",
	"Asia/Pyongyang", "Asia/Gaza", "Asia/Jerusalem", "Asia/Beirut", "Asia/Amman", "Asia/Dubai", "Australia/Sydney",
	"Australia/Adelaide", "Australia/Lord_Howe", "Australia/Eucla", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Apia",
	"Pacific/Kiritimati", "Pacific/Marquesas", "Pacific/Honolulu", "America/New_York", "America/Los_Angeles", "America/St_Johns",
	"America/Havana", "America/Santiago", "America/Asuncion", "America/Sao_Paulo", "America/Caracas", "America/Nuuk",
	"Atlantic/Azores", "Antarctica/Casey",
}

// A check at the start of each window and one in its last millisecond count in the same
// window, and the next millisecond begins another one.
func TestTheBordersOfACalendar(t *testing.T) {
	from, to := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	from = testkit.Bound(to.AddDate(-1, 0, 0), from)
	for _, zone := range zones {
		for _, text := range []string{"2/day in ", "2/week in ", "2/month in "} {
			c := clockAt(from)
			l := &Limiter{Store: new(memstore.Store), Now: c.now}
			p := policy.Must(text + zone)
			c.unix.Store(time.UnixMilli(p.Read(from.UnixMilli(), 0, nil).ResetAt).UnixNano())
			for i := 0; c.now().Before(to); i++ {
				first := mustCheck(t, l, request(p, "first "+strconv.Itoa(i), 1))
				c.unix.Store(time.UnixMilli(first.ResetAt - 1).UnixNano())
				last := mustCheck(t, l, request(p, "last "+strconv.Itoa(i), 1))
				if first.Used != 1 || last.Used != 2 || last.WindowKey != first.WindowKey || last.ResetAt != first.ResetAt {
					t.Fatalf("%v: %d of window %d, and at its last millisecond %d of window %d", p, first.Used, first.WindowKey, last.Used, last.WindowKey)
				}
				if d := mustCheck(t, l, request(p, "third "+strconv.Itoa(i), 1)); d.Allowed || d.Wait != time.Millisecond {
					t.Fatalf("%v: a third check is told %v, wait %v", p, d.Reason, d.Wait)
				}
				c.add(time.Millisecond)
			}
		}
	}
}
