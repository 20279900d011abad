package testkit_test

import (
	"runtime"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestInUseCountsWhatIsAlive(t *testing.T) {
	const size = 8 << 20
	before := testkit.HeapInUse()
	b := make([]byte, size)
	with := testkit.HeapInUse()
	runtime.KeepAlive(b)
	after := testkit.HeapInUse()
	const most = size / 8 // other objects come and go, too
	if grew, fell := with-before, with-after; min(grew, fell) < size-most || max(grew, fell) > size+most {
		t.Errorf("the heap grew by %d and fell by %d, want about %d", grew, fell, size)
	}
}
