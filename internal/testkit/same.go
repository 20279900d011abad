package testkit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Same reports how a value differs from the wanted one. what names the value, such as "the report".
func Same(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
