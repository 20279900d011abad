package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const longestLine = 64 << 10 // bytes

var errTooLong = fmt.Errorf("it is longer than %d bytes", longestLine)

// lines splits text into records. A record is a line, or several lines if the
// line breaks are inside the quotes of CSV.
type lines struct {
	text   *bufio.Reader // with room for longestLine
	quotes bool          // the text is CSV
	number int64         // of the first line of the last record; the file's first line is 1
	more   int64         // lines of the last record after its first one
	joined []byte
}

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
	if l.quotes && bytes.IndexByte(line, '"') >= 0 {
		line = l.join(line)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// join returns line with the lines that follow inside its quotes. If the quotes
// are malformed or never end, it returns line alone, and that line is a bad one.
func (l *lines) join(line []byte) []byte {
	var q quotes
	if q.end(line) >= 0 || q.state == malformed {
		return line
	}
	l.joined = append(l.joined[:0], line...)
	following, _ := l.text.Peek(longestLine - len(line))
	end := q.end(following)
	if end < 0 && len(line)+len(following) < longestLine && q.state != inQuotes && q.state != malformed {
		end = len(following) // the last line of the file has no line break
	}
	if end < 0 {
		return l.joined
	}
	l.joined = append(l.joined, following[:end]...)
	l.more = int64(bytes.Count(following[:end], []byte{'\n'}))
	if l.joined[len(l.joined)-1] != '\n' {
		l.more++
	}
	_, _ = l.text.Discard(end)
	return l.joined
}

// quotes tells the line breaks that end a record of CSV from those inside
// quotes. The zero value is at the start of a record.
type quotes struct{ state quoteState }

type quoteState uint8

const (
	fieldStart quoteState = iota
	inField
	inQuotes
	quoteInQuotes // a quote that ends the quotes, unless another one follows
	malformed
)

// end returns the length of the record up to and including its line break, or
// -1 if text ends first or is not CSV.
func (q *quotes) end(text []byte) int {
	for i, c := range text {
		switch {
		case c == '"' && q.state == inQuotes:
			q.state = quoteInQuotes
		case q.state == inQuotes:
		case c == '"' && q.state != inField:
			q.state = inQuotes
		case c == '\n':
			return i + 1
		case c == ',':
			q.state = fieldStart
		case q.state == quoteInQuotes && c != '\r':
			q.state = malformed
			return -1
		default:
			q.state = inField
		}
	}
	return -1
}
