package limits_test

import (
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/limits"
)

func TestTheLimitsAreValid(t *testing.T) {
	if err := guards.Validate(limits.All); err != nil {
		t.Error(err)
	}
}
