package scaffold

import "testing"

func TestWithEntry(t *testing.T) {
	for text, want := range map[string]string{
		"# Log\n\n## Unreleased\n\n### Added\n\n- old\n":  "# Log\n\n## Unreleased\n\n### Added\n\n- new\n- old\n",
		"# Log\n\n## Unreleased\n":                        "# Log\n\n## Unreleased\n\n### Added\n\n- new\n",
		"# Log\n\n## 0.1\n\n### Added\n\n- old\n":         "# Log\n\n## Unreleased\n\n### Added\n\n- new\n\n## 0.1\n\n### Added\n\n- old\n",
		"# Log\n\nAll changes.\n":                         "# Log\n\nAll changes.\n\n## Unreleased\n\n### Added\n\n- new\n\n",
		"# Log\n\n## Unreleased\n\n## 0.1\n\n### Added\n": "# Log\n\n## Unreleased\n\n### Added\n\n- new\n\n## 0.1\n\n### Added\n",
	} {
		if got := withEntry(text, "- new\n"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
