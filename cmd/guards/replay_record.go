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
	start int64 // the offset in file at which the traffic begins
	done  int64 // bytes read since then
	file  *os.File
	copy  *os.File // a copy of a file that can be read only once; nil: none is needed
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
		r.start, err = r.file.Seek(0, io.SeekCurrent)
		r.size = info.Size() - r.start
		return r, err
	}
	if err == nil && again {
		r.copy, err = os.CreateTemp("", "guards-replay-*")
		r.from = io.TeeReader(r.file, r.copy)
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
	r.done = 0
	if r.copy != nil {
		_, err := r.copy.Seek(0, io.SeekStart)
		r.from = r.copy
		return err
	}
	_, err := r.file.Seek(r.start, io.SeekStart)
	return err
}

func (r *record) close() {
	_ = r.file.Close()
	if r.copy != nil {
		_ = errors.Join(r.copy.Close(), os.Remove(r.copy.Name()))
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
