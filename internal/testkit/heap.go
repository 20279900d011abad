package testkit

import "runtime"

// HeapInUse returns how many bytes the objects in the heap take that are still
// in use. It collects garbage twice, because a sync.Pool keeps its objects for one
// collection.
func HeapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
