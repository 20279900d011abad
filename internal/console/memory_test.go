package console_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A function can be sent 6 MiB. No guard accepts that, and the console keeps only
// the start of it.
func TestLongEventsTakeLittleMemory(t *testing.T) {
	r := start(t, 30*time.Second, nil)
	s := r.watch("")
	long := `{"userId": "` + strings.Repeat("u", 2<<20) + `"}`
	before := live()
	const events = 20
	for range events {
		r.send(http.MethodPost, "/2015-03-31/functions/posts-guard/invocations", long)
	}
	s.wait("answer", "ValidationError")
	if grew := live() - before; grew > 10<<20 {
		t.Errorf("%d events of 2 MiB take %d KiB", events, grew>>10)
	}
}

// live returns the bytes of the objects that are still in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
