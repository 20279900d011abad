package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A function can be sent 6 MiB. No guard accepts that, and the console keeps and shows
// only the start of it.
func TestLongEventsTakeLittleMemory(t *testing.T) {
	r := start(t, 30*time.Second, nil)
	s := r.watch("")
	long := `{"userId": "` + strings.Repeat("u", 2<<20) + `"}`
	before := testkit.HeapInUse()
	const events = 8
	for range events {
		r.send(http.MethodPost, "/2015-03-31/functions/posts-guard/invocations", long)
	}
	if e := s.wait("answer", "ValidationError"); len(e.data) > 10_000 || !strings.Contains(e.data, `uuu ...",`) {
		t.Errorf("the page gets %d bytes of an event: %.5000s", len(e.data), e.data)
	}
	if grew := testkit.HeapInUse() - before; grew > 4<<20 {
		t.Errorf("%d events of 2 MiB take %d KiB", events, grew>>10)
	}
}
