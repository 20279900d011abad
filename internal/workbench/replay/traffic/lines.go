package traffic

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// unpack returns the text of a file as UTF-8 without a byte order mark. The first
// bytes tell gzip, zstd and UTF-16 from text.
func unpack(raw io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(raw, maxLine)
	switch magic, _ := text.Peek(4); {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		unpacked, err := gzip.NewReader(text)
		if err != nil {
			return nil, err
		}
		text = bufio.NewReaderSize(unpacked, maxLine)
	case string(magic) == "\x28\xb5\x2f\xfd":
		unpacked, err := zstd.NewReader(text, zstd.WithDecoderConcurrency(1)) // which starts no goroutine, so nothing has to be closed
		if err != nil {
			return nil, err
		}
		text = bufio.NewReaderSize(unpacked, maxLine)
	}
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" { // spreadsheets put a byte order mark before CSV
		_, _ = text.Discard(3)
	}
	if start, _ := text.Peek(4); bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")) || bytes.IndexByte(start, 0) >= 0 {
		return nil, errors.New("it is UTF-16 or no text, want UTF-8")
	}
	return text, nil
}

const maxLine = 64 << 10 // bytes

var errTooLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// lines splits text into records. A record is a line, or several lines if the
// line breaks are inside the quotes of CSV.
type lines struct {
	text   *bufio.Reader // with room for maxLine
	quotes bool          // the text is CSV
	number int64         // of the first line of the last record; the file's first line is 1
	more   int64         // lines of the last record after its first one
	joined []byte
}

// at tells where the last record stands.
func (l *lines) at() (string, int64) { return "line", l.number }

// next returns the next record. It is valid until the next call. After
// errTooLong, the next call returns the line that follows.
func (l *lines) next() ([]byte, error) {
	line, err := l.text.ReadSlice('\n')
	if len(line) == 0 && err != nil {
		return nil, err
	}
	l.number += 1 + l.more
	l.more = 0
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.text.ReadSlice('\n')
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = errTooLong
		}
		return nil, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if l.quotes && bytes.Count(line, []byte{'"'})%2 != 0 { // quotes come in pairs, so some are still open
		line = l.join(line)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// join returns line with the lines that follow inside its quotes. If the quotes
// are malformed or never end, it returns line alone, and that line is a bad one.
func (l *lines) join(line []byte) []byte {
	n := len(line)
	l.joined = append(l.joined[:0], line...)
	following, _ := l.text.Peek(maxLine - n)
	l.joined = append(l.joined, following...)
	r := csv.NewReader(bytes.NewReader(l.joined))
	_, err := r.Read()
	end := int(r.InputOffset())
	if errors.Is(err, csv.ErrQuote) || end == maxLine && l.joined[end-1] != '\n' { // the record may be longer
		return l.joined[:n]
	}
	record := l.joined[:end]
	l.more = int64(bytes.Count(bytes.TrimSuffix(record, newline), newline))
	_, _ = l.text.Discard(end - n)
	return record
}

var newline = []byte{'\n'}
