package ratelimit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
)

// Whatever is known, packing and unpacking returns the same.
func TestPackRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Known{
			Seen: drawItem(t), Fallback: drawItem(t),
			Asked: drawTime(t), Invalidated: drawTime(t),
		}
		if diff := cmp.Diff(want, unpack(string(pack(nil, want))), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Known{})); diff != "" {
			t.Fatalf("unpack(pack) (-want +got):\n%s", diff)
		}
	})
}

func TestUnpackOfNothing(t *testing.T) {
	if diff := cmp.Diff(Known{}, unpack(""), cmpopts.IgnoreUnexported(Known{})); diff != "" {
		t.Errorf("unpack of nothing (-want +got):\n%s", diff)
	}
}

func drawItem(t *rapid.T) Item {
	name := rapid.SampledFrom([]string{"", "a0", "tat", "activityCount", "c473215", "minute_s"})
	mark := rapid.Custom(func(t *rapid.T) Element {
		var m Element
		copy(m.ID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "id"))
		m.Note = rapid.Int64().Draw(t, "note")
		return m
	})
	return Item{
		State: policy.State(rapid.MapOf(name, rapid.Int64()).Draw(t, "state")),
		IDs:   IDs(rapid.MapOf(rapid.SampledFrom([]string{"ids", "i00", "i30"}), rapid.SliceOfN(mark, 0, 200)).Draw(t, "ids")),
	}
}

// drawTime draws the zero time or one that Unix nanoseconds can express.
func drawTime(t *rapid.T) time.Time {
	if n := rapid.Int64Range(-1<<62, 1<<62).Draw(t, "nanoseconds"); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}
