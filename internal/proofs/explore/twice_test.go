package explore

import "github.com/cric-talk/guards/internal/policy"

// Two attempts of one request run side by side in a room that is full, and a third one in some
// systems. One of them can be refused before a place comes free, and another one admitted after it.
var (
	againOf2 = request{verb: repeat, of: 2}

	// Another action of the same user leaves the room.
	inAFullRoom = []scenario{{[]request{one, undo, one, againOf2}, 1}}
	// The same in a room for four actions of a group.
	groupInAFullRoom = []scenario{{[]request{one, undo, one, againOf2}, 3}}
	// The same if the prefill counts in the user's item, and not in the room's.
	prepaidInAFullRoom = []scenario{{[]request{both, undoBoth, one, againOf2}, 0}}

	// Time passes, and a place comes back. The last scenario releases what was admitted, and
	// sends the request again.
	untilAPlaceComesBack = []scenario{
		{[]request{one, again}, two},
		{[]request{one, again, again}, two},
		{[]request{one, again, {verb: release, of: 1, count: 1}, again}, two},
	}
)

// fillingRooms returns users in a room that is a bucket. A place in it comes back after 5 s.
func fillingRooms() (subjects []subject) {
	for _, k := range policy.Kinds() {
		if s := text(k, two, 10); !policy.Must(s).Queues() {
			subjects = append(subjects, subject{kinds: k.Name + " in a room", text: []string{s}, room: []string{"bucket 2/10s"}})
		}
	}
	return subjects
}
