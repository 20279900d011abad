package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// Each open page makes requests slower. One page too many is told why.
func TestTwentyPagesCanBeOpen(t *testing.T) {
	r := start(t, 0, nil)
	var pages []*stream
	for range 20 {
		s := r.watch("")
		s.wait("windows", "")
		pages = append(pages, s)
	}
	r.send("GET", "/console/events", "").Wants(t, 503, "20 consoles are open, which is the most. Close one, and load this page again.\n")
	pages[7].stop()
	status := 0 // the server notices within moments that the page is gone
	for end := time.Now().Add(30 * time.Second); status != http.StatusOK && time.Now().Before(end); {
		response := r.open("")
		_ = response.Body.Close()
		status = response.StatusCode
	}
	if status != http.StatusOK {
		t.Errorf("after a page was closed: %d", status)
	}
}

// Open pages read a window with a count once a second, however many they are. A
// window without a count needs no reads.
func TestOpenPagesReadOnceASecond(t *testing.T) {
	r := start(t, 0, nil)
	r.app("pins-guard", `{"userId": "u1", "activity": "pin"}`)
	r.app("pins-guard", `{"userId": "u2", "activity": "pin"}`)
	r.app("pins-guard", `{"userId": "u2", "activity": "pin", "op": "reset"}`)
	began, before := time.Now(), r.store.reads.Load()
	for range 3 {
		r.watch("").wait("windows", "")
	}
	var reads int64
	for reads < 4 && time.Since(began) < 30*time.Second {
		time.Sleep(10 * time.Millisecond)
		reads = r.store.reads.Load() - before
	}
	if most := int64(time.Since(began)/time.Second) + 1; reads < 4 || reads > most {
		t.Errorf("%d reads in %v, want 4 to %d", reads, time.Since(began), most)
	}
}

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
