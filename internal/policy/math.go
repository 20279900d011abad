package policy

import (
	"math"
	"math/bits"
)

// scale returns (a*b + up) / c, rounded down, even if the product does not fit
// in 64 bits. With up = c-1 the division rounds up. If a <= 0 it returns 0. b,
// c and up must not be negative, and c must not be 0. A larger result becomes
// forever.
func scale(a, b, c, up int64) int64 {
	const forever = math.MaxInt64 / 4 // far away, and sums with it still fit
	if a <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(up), 0)
	if high += carry; high >= uint64(c) {
		return forever
	}
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(min(q, forever))
}
