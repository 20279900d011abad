package explore

import (
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// live returns limits that follow one another. In text, %d stands for the number of each.
func live(text string, numbers ...int) (all []string) {
	for _, n := range numbers {
		all = append(all, strings.ReplaceAll(text, "%d", strconv.Itoa(n)))
	}
	return all
}

// priced returns the kinds that take a cost, each as a text without its number.
func priced() (texts []string) {
	for _, k := range policy.Kinds() {
		if _, err := policy.Parse(text(k, two, 10) + " cost 2"); err == nil {
			texts = append(texts, k.Name+" %d/20s")
		}
	}
	return texts
}

// groupsInRooms returns groups in a room that limits the group, too. Each kind is on both
// sides. An action of the other activity costs two of both.
func groupsInRooms() (subjects []subject) {
	kinds := priced()
	for i, k := range kinds {
		user, inRoom := "a: "+k, "c: "+kinds[(i+1)%len(kinds)]
		subjects = append(subjects, subject{
			kinds: "group in a room", text: live(user, two, 4, two), dear: live(user+" cost 2", two, 4, two),
			room: live(inRoom, 4, two, 4), dearRoom: live(inRoom+" cost 2", 4, two, 4),
		})
	}
	return subjects
}

// heldInARoom returns users and rooms whose receipts are held for 15 minutes.
func heldInARoom() (subjects []subject) {
	for _, s := range [][2]string{{"sliding %d/2h", "bucket %d/2h"}, {"log %d/30m", "bucket %d/2h"}, {"bucket %d/2h", "log %d/30m"}, {"a: log %d/30m, b: sliding %d/2h", "c: bucket %d/2h"}} {
		subjects = append(subjects, subject{kinds: "held in a room", text: live(s[0], two, 1, 4), room: live(s[1], two, 4, 1), hold: true})
	}
	return subjects
}

// prepaidInRooms returns users in a room with a prepaid limit, and a user with a prepaid
// limit in a room. Each kind that has no places is beside one.
func prepaidInRooms() (subjects []subject) {
	kinds := priced()
	for i, p := range prepaids() {
		other := live(kinds[i%len(kinds)], two, 1, 4)
		subjects = append(subjects,
			subject{kinds: "prepaid room", text: other, room: p.text, prefill: p.prefill},
			subject{kinds: "prepaid in a room", text: p.text, room: other, prefill: p.prefill})
	}
	return subjects
}

// prepaidGroups returns prepaid groups. In each, an action of the other activity costs two.
func prepaidGroups() (subjects []subject) {
	for _, k := range priced() {
		k = "a: " + strings.Replace(k, "20s", "30s", 1)
		if _, err := policy.Parse(live(k+" prepaid", 250)[0]); err == nil {
			dear := live(k+" cost 2 prepaid", 250, 240, 300)
			subjects = append(subjects, subject{kinds: "prepaid group", text: live(k+" prepaid", 250, 240, 300), dear: dear, prefill: 246})
		}
	}
	return subjects
}

// quotas returns calendar limits whose actions cost two. The other requests are of a tier
// with a higher quota, or of an activity of the group that costs two where the others cost one.
func quotas() []subject {
	const day = "%d/day in Europe/Berlin"
	return []subject{
		{kinds: "calendar with tiers", text: live(day+" cost 2", two, 4, 6), dear: live(day+" cost 2", 4, two, 8)},
		{kinds: "calendar in a group", text: live("a: "+day+", b: 4/20s", 4, two, 6), dear: live("a: "+day+" cost 2, b: 4/20s", 4, two, 6)},
	}
}
