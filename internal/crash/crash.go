// Package crash keeps a panic from ending a process that is not a guard's alone. An agent runs
// beside an app, and in Lambda its end is the end of the app's function.
//
// A panic in a goroutine ends the process, unless that goroutine itself recovers. So each
// goroutine that a decision starts defers [Contain]. In a guard's own function nothing calls
// [Report], and the panic ends the instance: Lambda starts another one.
package crash

import (
	"runtime/debug"
	"sync/atomic"
)

var report atomic.Pointer[func(value any, stack []byte)]

// Report makes this process survive panics. It calls to for each one, from its goroutine.
func Report(to func(value any, stack []byte)) { report.Store(&to) }

// Contain is for defer alone. It ends a panic of its goroutine if [Report] was called.
func Contain() {
	to := report.Load()
	if to == nil {
		return
	}
	if value := recover(); value != nil {
		(*to)(value, debug.Stack())
	}
}
