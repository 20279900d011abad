package release_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// filesOf reads all files of a folder or an archive.
func filesOf(t *testing.T, folder fs.FS) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	testkit.OK(t, fs.WalkDir(folder, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[name], err = fs.ReadFile(folder, name)
		}
		return err
	}))
	return files
}

// unpack returns the files of an archive.
func unpack(t *testing.T, name string, archive []byte) map[string][]byte {
	t.Helper()
	if strings.HasSuffix(name, ".zip") {
		return filesOf(t, testkit.Must(zip.NewReader(bytes.NewReader(archive), int64(len(archive))))(t))
	}
	compressed := testkit.Must(gzip.NewReader(bytes.NewReader(archive)))(t)
	files := map[string][]byte{}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		testkit.OK(t, err)
		files[header.Name] = testkit.Must(io.ReadAll(r))(t)
	}
}
