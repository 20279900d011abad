package findings

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyCodeChangesTheHash(t *testing.T) {
	const source = "package p\n\n// N is a number.\nconst N = 1\n"
	for _, test := range []struct {
		name, source string
		same         bool
	}{
		{"the same code", source, true},
		{"another comment", "package p\n\n// N counts.\nconst N = 1 // one\n", true},
		{"other spaces", "package p\nconst\tN = 1", true},
		{"another number", "package p\n\nconst N = 2\n", false},
		{"another name", "package p\n\nconst M = 1\n", false},
		{"one more line", source + "const M = 1\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if same := hashOf(t, source) == hashOf(t, test.source); same != test.same {
				t.Errorf("the hash is the same: %v, want %v", same, test.same)
			}
		})
	}
}

func hashOf(t *testing.T, source string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{"p.go": source, "p_test.go": "package p\n\nconst T = 1\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash, err := Hash(root, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestAFolderWithoutCodeHasNoHash(t *testing.T) {
	if _, err := Hash(t.TempDir(), []string{"missing"}); err == nil {
		t.Error("got a hash, want an error")
	}
}
