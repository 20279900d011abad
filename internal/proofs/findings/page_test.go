package findings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Figures are old if their code has changed since. The page names them, and Stale lists
// them. Tests, comments and spaces are no code.
func TestFiguresOlderThanTheirCodeAreNamed(t *testing.T) {
	const source = "package p\n\n// N is a number.\nconst N = 1\n"
	root := t.TempDir()
	page := Page{File: "page.md", Text: `{{found "n"}}, {{goals "n"}}`, Parts: []Part{{Name: "n", Command: "make n", Sources: []string{"."}}}}
	if err := os.Mkdir(filepath.Join(root, "page"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("p_test.go", "package p\n\nconst T = 1\n")
	write("p.go", source)
	write("p.ts", "const n = 1;\n")
	hash, err := Hash(root, page.Parts[0].Sources)
	if err != nil {
		t.Fatal(err)
	}
	write("page/n.json", `{"command": "make n", "commit": "c1", "date": "2026-01-31", "sources": "`+hash+`"}`)
	for _, test := range []struct {
		name, file, source string
		older              bool
	}{
		{"the same code", "p.go", source, false},
		{"another comment", "p.go", "package p\n\n// N counts.\nconst N = 1 // one\n", false},
		{"other spaces", "p.go", "package p\nconst\tN = 1", false},
		{"another number", "p.go", "package p\n\nconst N = 2\n", true},
		{"another name", "p.go", "package p\n\nconst M = 1\n", true},
		{"one more line", "p.go", source + "const M = 1\n", true},
		{"the first code again", "p.go", source, false},
		{"another number in TypeScript", "p.ts", "const n = 2;\n", true},
	} {
		write(test.file, test.source)
		stale, err := page.Stale(root)
		if err != nil || slices.Contains(stale, "n") != test.older {
			t.Errorf("%s: stale are %v, %v", test.name, stale, err)
		}
		files, err := page.files(root)
		if err != nil || strings.HasPrefix(string(files["page.md"]), "c1, 2026-01-31 | yes, ") != test.older ||
			strings.HasSuffix(string(files["page.md"]), " at c1, since changed.") != test.older {
			t.Errorf("%s: the page is %q, %v", test.name, files["page.md"], err)
		}
	}
}

func TestAPageShowsOnlyWhatIsSaved(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "page"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("p.go", "package p\n")
	write("page/n.json", `{"command": "make n", "figures": [{"what": "states", "value": "1234"}],
		"tables": [{"title": "T", "head": ["limit", "most"], "rows": [{"limit": "10/1m", "most": "2|0"}]}]}`)
	for text, want := range map[string]string{
		`{{figure "n" "states"}}`:       "1,234",
		`{{cell "n" "most" "10/1m"}}`:   "2|0",
		`{{table "n" "T"}}`:             "| limit | most |\n|---|---|\n| 10/1m | 2\\|0 |\n",
		`{{figure "n" "absent"}}`:       "",
		`{{cell "n" "absent" "10/1m"}}`: "",
		`{{table "n" "absent"}}`:        "",
		`{{goals "m"}}`:                 "",
		`{{found "absent"}}`:            "",
	} {
		page := Page{File: "page.md", Text: text, Parts: []Part{{"n", "make n", []string{"."}}, {"m", "make m", []string{"."}}}}
		files, err := page.files(root)
		if got := string(files["page.md"]); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", text, got, err, want)
		}
	}
}
