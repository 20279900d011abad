package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// What a check costs without a network: the core's own share of a decision.
func BenchmarkCheck(b *testing.B) {
	for _, text := range []string{"10/1m", "sliding 50/1h", "bucket 10/1m", "log 100/12h"} {
		b.Run(text, func(b *testing.B) {
			l := &Limiter{Store: new(memstore.Store), Memory: NewMemory(DefaultMemory), Timeout: time.Second}
			r := Request{Activity: "vote", Policy: policy.Must(text), Count: 1}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r.UserID, r.ID = fmt.Sprintf("u%07d", n/8), fmt.Sprintf("r%d", n)
				n++
				if d, err := l.Check(b.Context(), r); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}
