package client

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
)

// Numbers are the numbers of a request's limits. The name is for apps whose variable guards, the
// client, hides the package guards.
type Numbers = guards.Numbers

// Number returns the number of the user's only limit. 0 allows nothing.
func Number(n int64) Numbers { return guards.Number(n) }

// limitName matches the names in an answer's limits, such as call_api, tenant and room.minute.
var limitName = regexp.MustCompile(`^[a-z]([a-z_]{0,34}[a-z])?(\.[a-z]{1,8})?$`)

// wrongLimit returns what is wrong with the numbers of a request; "" if they are right. Only the
// guard knows which names the activity has. The message shows no name of another form, because
// that could be an id.
func (r *Request) wrongLimit(op guards.Op) string {
	if len(r.Limit) > 0 && op == guards.Reset {
		return "limit does not go with a reset"
	}
	for _, name := range slices.Sorted(maps.Keys(r.Limit)) {
		only := name == "" && len(r.Limit) == 1
		if !only && !limitName.MatchString(name) {
			return "limit has a name of another form, want those in the answer's limits, such as tenant or room.minute"
		}
		if n := r.Limit[name]; n < 0 || n > 1_000_000 {
			return fmt.Sprintf("%s is %d, want 0 to 1,000,000", strings.TrimSuffix("limit."+name, "."), n)
		}
	}
	return ""
}
