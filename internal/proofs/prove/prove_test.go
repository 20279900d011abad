package prove

import (
	"strings"
	"testing"
)

func TestAnUnknownPartIsNamed(t *testing.T) {
	_, err := Select([]string{"explore", "exlpore"})
	if err == nil || !strings.Contains(err.Error(), `no proof "exlpore"; the proofs are explore, simulate`) {
		t.Errorf("got %v, want an error that names the part and lists the others", err)
	}
}
