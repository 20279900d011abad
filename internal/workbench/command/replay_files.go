package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A record is the files of recorded traffic, which can be read again.
type record struct {
	files []*recordFile
	size  int64 // bytes of all files; 0: unknown
	done  int64 // bytes that were read since the start
	read  bool  // reader was called
}

// A recordFile is one file of a record.
type recordFile struct {
	name   string
	from   io.Reader
	file   *os.File
	again  *os.File // what the next reader reads: file, or a copy if file can be read only once
	start  int64    // the offset in again where the traffic begins
	rewind bool     // the next Read begins at the start of again
	done   *int64   // bytes that were read from all files
}

// openRecord opens files; - is standard input. If again is set and a file can be
// read only once, as a pipe, reading it makes a temporary copy.
func openRecord(ctx context.Context, names []string, again bool) (*record, error) {
	r := &record{}
	if i := slices.Index(names, "-"); i >= 0 && slices.Contains(names[i+1:], "-") {
		return nil, errors.New("- is given twice, but standard input can be read only once")
	}
	known := true
	for _, name := range names {
		f, size, err := openRecordFile(ctx, name, again)
		if err != nil {
			r.close()
			return nil, err
		}
		f.done = &r.done
		r.files, r.size, known = append(r.files, f), r.size+size, known && size > 0
	}
	if !known {
		r.size = 0
	}
	return r, nil
}

// openRecordFile opens one file and returns its size; 0: unknown.
func openRecordFile(ctx context.Context, name string, again bool) (f *recordFile, size int64, err error) {
	f = &recordFile{name: name, file: os.Stdin}
	if name == "-" {
		f.name = "standard input"
	} else if f.file, err = os.Open(name); err != nil {
		return nil, 0, err
	}
	f.from = f.file
	info, err := f.file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, want files", name)
	}
	if err == nil && info.Mode().IsRegular() {
		f.again = f.file
		f.start, err = f.file.Seek(0, io.SeekCurrent)
		return f, info.Size() - f.start, err
	}
	if err == nil {
		f.from = interruptible(ctx, f.file)
	}
	if err == nil && again {
		f.again, err = os.CreateTemp("", "guards-replay-*")
		f.from = io.TeeReader(f.from, f.again)
	}
	if err != nil {
		f.close()
	}
	return f, 0, err
}

// interruptible returns a reader of file. Its Read ends with the context, even
// while it waits for a pipe.
func interruptible(ctx context.Context, file *os.File) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, file)
		_ = in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	return out
}

// reader returns a reader of all files from their start. Before the second
// call, the first reader must have been read to its end.
func (r *record) reader(o traffic.Options) *traffic.Reader {
	var files []traffic.File
	for _, f := range r.files {
		f.rewind = r.read
		files = append(files, traffic.File{Name: f.name, Text: f})
	}
	r.read, r.done = true, 0
	return traffic.NewReader(o, files...)
}

// Read implements [io.Reader].
func (f *recordFile) Read(p []byte) (int, error) {
	if f.rewind {
		if _, err := f.again.Seek(f.start, io.SeekStart); err != nil {
			return 0, err
		}
		f.from, f.rewind = f.again, false
	}
	n, err := f.from.Read(p)
	*f.done += int64(n)
	return n, err
}

// same returns the name of the file of the record that a path leads to, even
// through a link. It returns an empty text if there is none.
func (r *record) same(path string) string {
	target, err := os.Stat(path)
	if err != nil {
		return "" // there is no such file
	}
	for _, f := range r.files {
		if info, err := f.file.Stat(); err == nil && os.SameFile(info, target) {
			return f.name
		}
	}
	return ""
}

func (r *record) close() {
	for _, f := range r.files {
		f.close()
	}
}

func (f *recordFile) close() {
	_ = f.file.Close()
	if f.again != nil && f.again != f.file {
		_ = errors.Join(f.again.Close(), os.Remove(f.again.Name()))
	}
}

// progress shows on a terminal how much of the files was read.
func (r *record) progress(env session, lines int64) {
	soFar := grouped(lines) + " lines"
	if r.size > 0 {
		env.bar(int(min(100, 100*r.done/r.size)), 100, soFar)
		return
	}
	env.tell(fmt.Sprintf("%s, %d MB", soFar, r.done>>20))
}
