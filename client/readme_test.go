package client_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cric-talk/guards/client"
)

func TestTheReadmeListsEachOption(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[client.Options]().Fields() {
		if !strings.Contains(string(readme), "\n| `"+field.Name+"` | ") {
			t.Errorf("the table of the options lacks %s", field.Name)
		}
	}
}
