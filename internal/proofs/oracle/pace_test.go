package oracle

import "testing"

func TestAPaceIsBrokenByOneActionTooMany(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   []int64 // of single actions; the interval is 6 s and the burst 3
		back int64   // the moment of an action that is given back before the last one; 0: none
		want bool    // whether the last action keeps the promise
	}{
		{"the burst", []int64{100_000, 100_000, 100_000}, 0, true},
		{"one more", []int64{100_000, 100_000, 100_000, 100_000}, 0, false},
		{"one came back, 2 s early by another clock", []int64{100_000, 100_000, 100_000, 104_000}, 0, true},
		{"a millisecond too early", []int64{100_000, 100_000, 100_000, 103_999}, 0, false},
		{"one was given back", []int64{100_000, 100_001, 100_002, 100_003}, 100_001, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p pace
			for i, at := range tt.at {
				last := i == len(tt.at)-1
				if last && tt.back != 0 {
					p.back(at, tt.back, 1)
				}
				if got := p.take(at, 1, 6000, 3); got != (tt.want || !last) {
					t.Errorf("the action at %d keeps the promise: %v", at, got)
				}
			}
		})
	}
}
