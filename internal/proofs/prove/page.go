package prove

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cric-talk/guards/internal/proofs/findings"

	"github.com/cric-talk/guards/internal/testkit"
)

//go:embed reliability.md.tmpl
var text string

// WritePage writes docs/reliability.md from the saved figures.
func WritePage() error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	content, err := page(root)
	if err != nil {
		return err
	}
	return os.WriteFile(pageFile(root), content, 0o644)
}

func pageFile(root string) string { return filepath.Join(root, "docs", "reliability.md") }

// page returns the content of docs/reliability.md.
func page(root string) ([]byte, error) {
	return findings.Page(text, func(part string) (string, error) { return section(root, part) })
}

// section returns the figures of one part as Markdown.
func section(root, part string) (string, error) {
	p, err := find(part)
	if err != nil {
		return "", err
	}
	s, err := findings.Read[findings.Saved](p.file(root))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("This proof has not run with its long bounds yet. `make prove PART=%s` runs it.", part), nil
	}
	if err != nil {
		return "", err
	}
	if older, err := s.Older(root, p.Sources); err != nil || !older {
		return s.Markdown(), err
	}
	return s.Markdown() + findings.HasChanged, nil
}

// Stale returns the names of the proofs whose figures are missing or older than
// their code.
func Stale() (stale []string, err error) {
	root, err := testkit.Root()
	if err != nil {
		return nil, err
	}
	for _, p := range Parts {
		s, err := findings.Read[findings.Saved](p.file(root))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		older, err := s.Older(root, p.Sources)
		if err != nil {
			return nil, err
		}
		if older {
			stale = append(stale, p.Name)
		}
	}
	return stale, nil
}
