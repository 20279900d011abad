package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// A record is a file of traffic that can be read again.
type record struct {
	name string
	size int64 // bytes; 0: unknown

	from  io.Reader
	done  int64 // bytes read since the start
	file  *os.File
	again *os.File // what rewind reads: file, or a copy if file can be read only once
	start int64    // the offset in again at which the traffic begins
}

// openRecord opens a file; - is standard input. If again is set and the file
// can be read only once, as a pipe, reading it makes a temporary copy.
func openRecord(name string, again bool) (*record, error) {
	r := &record{name: name, file: os.Stdin}
	if name == "-" {
		r.name = "standard input"
	} else {
		var err error
		if r.file, err = os.Open(name); err != nil {
			return nil, err
		}
	}
	r.from = r.file
	info, err := r.file.Stat()
	if err == nil && info.Mode().IsRegular() {
		r.again = r.file
		r.start, err = r.file.Seek(0, io.SeekCurrent)
		r.size = info.Size() - r.start
		return r, err
	}
	if err == nil && again {
		r.again, err = os.CreateTemp("", "guards-replay-*")
		r.from = io.TeeReader(r.file, r.again)
	}
	if err != nil {
		r.close()
	}
	return r, err
}

// Read implements [io.Reader].
func (r *record) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.done += int64(n)
	return n, err
}

// rewind goes back to the start. The record must have been read to its end.
func (r *record) rewind() error {
	r.from, r.done = r.again, 0
	_, err := r.again.Seek(r.start, io.SeekStart)
	return err
}

func (r *record) close() {
	_ = r.file.Close()
	if r.again != nil && r.again != r.file {
		_ = errors.Join(r.again.Close(), os.Remove(r.again.Name()))
	}
}

// progress shows on a terminal how much of the file was read.
func (r *record) progress(con console, lines int64) {
	soFar := grouped(lines) + " lines"
	if r.size > 0 {
		con.bar(int(min(100, 100*r.done/r.size)), 100, soFar)
		return
	}
	con.tell(fmt.Sprintf("%s, %d MB", soFar, r.done>>20))
}
