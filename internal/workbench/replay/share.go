package replay

import (
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/input"
)

// A Share is a part of a whole, in millionths: 999,000 is 99.9%.
type Share int64

const whole = 1_000_000

// ParseShare reads a share above 0 and up to 100 %, such as 99.9%, with up to
// four decimals.
func ParseShare(text string) (Share, error) {
	digits, isPercent := strings.CutSuffix(text, "%")
	percent, fraction, _ := strings.Cut(strings.TrimSpace(digits), ".")
	n, err := strconv.ParseUint(percent+(fraction + "0000")[:4], 10, 32)
	if !isPercent || err != nil || len(fraction) > 4 || n < 1 || n > whole {
		return 0, input.Invalid("share", input.Show(text), "a percentage above 0% and up to 100%, such as 99.9%")
	}
	return Share(n), nil
}

// String returns the share as a percentage.
func (s Share) String() string {
	return strconv.FormatFloat(float64(s)*100/whole, 'f', -1, 64) + "%"
}

// of returns the share of n, rounded up.
func (s Share) of(n int64) int64 { return (n*int64(s) + whole - 1) / whole }
