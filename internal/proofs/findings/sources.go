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

// Hash returns a hash of the Go code in the folders, which are in root. It leaves
// out tests, comments and spaces, which change no figure.
func Hash(root string, folders []string) (string, error) {
	sum := sha256.New()
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return "", err
		}
		if len(names) == 0 {
			return "", fmt.Errorf("%s holds no Go file", folder)
		}
		for _, name := range names { // Glob sorts them
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			if err := tokens(sum, source); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
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
