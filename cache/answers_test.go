package cache

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// scripted is a connection on which a stream arrives in pieces.
type scripted struct {
	net.Conn
	stream, cuts []byte
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.stream) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(s.stream))
	if len(s.cuts) > 0 {
		n, s.cuts = min(n, 1+int(s.cuts[0])), s.cuts[1:]
	}
	copy(p, s.stream[:n])
	s.stream = s.stream[n:]
	return n, nil
}

// plainAnswers reads a stream in the plain way, answer by answer from the outside in. It gives
// how far it is good, and whether that is to its end.
type plainAnswers struct {
	stream      []byte
	at          int
	size, items int
}

var errCut = errors.New("the stream ends")

func (p *plainAnswers) good() (int, bool) {
	for {
		p.size, p.items = 0, 0
		start := p.at
		switch err := p.answer(0); {
		case errors.Is(err, errCut):
			return len(p.stream), true
		case err != nil:
			return p.at, false
		case p.at == start:
			return p.at, true
		}
	}
}

func (p *plainAnswers) grow(n int) error {
	if p.size += n; n > maxAnswerBytes || p.size > maxAnswerBytes {
		return errAnswer
	}
	return nil
}

func (p *plainAnswers) answer(depth int) error {
	line, _, whole := bytes.Cut(p.stream[p.at:], []byte("\n"))
	if !whole {
		if p.size+len(line) > maxAnswerBytes {
			return errAnswer
		}
		return errCut
	}
	p.at += len(line) + 1
	if err := p.grow(len(line) + 1); err != nil || len(line) == 0 {
		return errAnswer
	}
	kind := line[0]
	if strings.ContainsRune("+-:_,#(", rune(kind)) {
		return nil
	}
	digits, ended := bytes.CutSuffix(line[1:], []byte("\r"))
	n, err := strconv.Atoi(string(digits))
	if err != nil || !ended || n < -1 || n > maxAnswerBytes || len(line) > 23 {
		return errAnswer
	}
	switch {
	case kind == '|':
		return p.parts(2*max(n, 0)+1, depth)
	case !strings.ContainsRune("$!=*~>%", rune(kind)):
		return errAnswer
	case n < 0:
		return nil
	case kind == '%':
		return p.parts(2*n, depth)
	case strings.ContainsRune("*~>", rune(kind)):
		return p.parts(n, depth)
	}
	if err := p.grow(n + 2); err != nil {
		return err
	}
	if p.at += n + 2; p.at > len(p.stream) {
		return errCut
	}
	return nil
}

func (p *plainAnswers) parts(n, depth int) error {
	if p.items += n; n > 0 && (p.items > maxAnswerItems || depth == maxAnswerDepth) {
		return errAnswer
	}
	for range n {
		if err := p.answer(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// FuzzAnswers: however a stream is cut, all of it comes up to the first answer that is beyond
// the bounds, and that one does not.
func FuzzAnswers(f *testing.F) {
	for _, answer := range append(wrongAnswers,
		"+OK\r\n$5\r\nhello\r\n*-1\r\n$-1\r\n:7\r\n", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n_\r\n#t\r\n,1.5\r\n(12\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n", "|1\r\n+a\r\n+b\r\n*3\r\n$3\r\n\r\n*\r\n~0\r\n>1\r\n=5\r\ntxt:a\r\n", "!3\r\nERR\r\n-ERR no\r\n",
		"$4194304\r\nand so on", "$16777200\r\n", strings.Repeat("*1\r\n", 16)+":1\r\n", "*3\r\n*200000\r\n",
	) {
		f.Add([]byte(answer), []byte{})
		f.Add([]byte(answer), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
		f.Add([]byte(answer+answer), []byte{2, 0, 7, 1})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		good, whole := (&plainAnswers{stream: stream}).good()
		came, err := io.ReadAll(bounded(&scripted{stream: stream, cuts: cuts}))
		if !bytes.HasPrefix(stream, came) {
			t.Fatalf("of %q came %q", stream, came)
		}
		if whole && (err != nil || len(came) != len(stream)) {
			t.Fatalf("of %q came %d bytes, with %v", stream, len(came), err)
		}
		if !whole && (!errors.Is(err, errAnswer) || len(came) >= good) {
			t.Fatalf("of %q, which is good for %d bytes, came %d, with %v", stream, good, len(came), err)
		}
	})
}

// TestLargeTextsAreNotLookedAt: what holds for small texts holds across the pieces of large ones.
func TestLargeTextsAreNotLookedAt(t *testing.T) {
	text := "$4194304\r\n" + strings.Repeat("*9000000000000\r\n", 4<<20/16) + "\r\n"
	stream := []byte("*3\r\n" + text + text + text + "+OK\r\n")
	came, err := io.ReadAll(bounded(&scripted{stream: stream}))
	if err != nil || !bytes.Equal(came, stream) {
		t.Errorf("%d of %d bytes came, with %v", len(came), len(stream), err)
	}
	more := append(stream, "*4\r\n"+text+text+text+text...)
	if came, err = io.ReadAll(bounded(&scripted{stream: more})); !errors.Is(err, errAnswer) {
		t.Errorf("%d bytes came, with %v", len(came), err)
	}
	if _, err = io.ReadAll(bounded(&scripted{stream: []byte("+" + strings.Repeat("x", maxAnswerBytes))})); !errors.Is(err, errAnswer) {
		t.Errorf("a line without an end is taken, with %v", err)
	}
}
