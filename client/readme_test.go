package client_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

func TestTheReadmeListsEachOption(t *testing.T) {
	readme := testkit.Must(os.ReadFile("README.md"))(t)
	for field := range reflect.TypeFor[client.Options]().Fields() {
		if !strings.Contains(string(readme), "\n| `"+field.Name+"` | ") {
			t.Errorf("the table of the options lacks %s", field.Name)
		}
	}
}
