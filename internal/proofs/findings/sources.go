package findings

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Decides are the folders with the code of a decision in one process.
var Decides = []string{"internal/policy", "internal/ratelimit", "internal/retry"}

// Asks are the folders with the code of a decision that asks DynamoDB.
var Asks = append(slices.Clone(Decides), "internal/ratelimit/dynamostore", "internal/ratelimit/dynamostore/dynamohttp", "internal/strictjson")

// Apps are the folders with the code that an app runs to ask a guard, in each language, and the
// agent that answers.
var Apps = append(slices.Clone(Asks), "client", "limiter", "internal/agentd", "clients/typescript/src", "clients/python/src/guards")

// Hash returns a hash of the code in the folders, which are in root. Of Go it leaves
// out tests, comments and spaces, which change no figure. Code in TypeScript and Python counts as
// it is.
func Hash(root string, folders []string) (string, error) {
	sum := sha256.New()
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(folder))) // sorted
		if err != nil {
			return "", err
		}
		found := false
		for _, entry := range entries {
			name := entry.Name()
			if !slices.Contains([]string{".go", ".ts", ".py"}, filepath.Ext(name)) {
				continue
			}
			found = true
			if err := hashFile(sum, filepath.Join(root, filepath.FromSlash(folder), name)); err != nil {
				return "", err
			}
		}
		if !found {
			return "", fmt.Errorf("%s holds no code", folder)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// hashFile writes what counts of a file.
func hashFile(w io.Writer, name string) error {
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	source, err := os.ReadFile(name)
	if err == nil && filepath.Ext(name) == ".go" {
		err = tokens(w, source)
	} else if err == nil {
		_, err = w.Write(source)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// tokens writes each token of a Go source on a line of its own. The scanner
// leaves comments out. Names of files have no influence, so that a file can be
// renamed.
func tokens(w io.Writer, source []byte) (err error) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, func(at token.Position, message string) {
		err = errors.Join(err, fmt.Errorf("line %d: %s", at.Line, message))
	}, 0)
	for {
		_, tok, literal := s.Scan()
		if tok == token.EOF {
			return err
		}
		if tok == token.SEMICOLON {
			literal = "" // "\n" if a line's end stands for it
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", tok, literal); err != nil {
			return err
		}
	}
}
