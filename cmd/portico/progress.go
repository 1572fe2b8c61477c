package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress shows how far the reading of a file has come: as a bar on a terminal, as
// a line now and then elsewhere.
type progress struct {
	io.Reader
	to       io.Writer
	terminal bool
	size     int64
	read     int64
	shown    time.Time
	count    int
	every    time.Duration
}

// newProgress reads a file through a progress.
func newProgress(to io.Writer, file *os.File) *progress {
	p := &progress{Reader: file, to: to, terminal: isTerminal(to), every: 5 * time.Second, shown: time.Now()}
	if p.terminal {
		p.every, p.shown = 100*time.Millisecond, time.Time{}
	}
	if about, err := file.Stat(); err == nil && about.Mode().IsRegular() {
		p.size = about.Size()
	}
	return p
}

// isTerminal tells a terminal from files and pipes.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	about, err := file.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	return n, err
}

// done is told how many exchanges are done.
func (p *progress) done(count int) {
	p.count = count
	if time.Since(p.shown) >= p.every {
		p.shown = time.Now()
		p.show()
	}
}

// barWidth is the width of the bar in characters.
const barWidth = 30

func (p *progress) show() {
	percent := int64(100)
	if p.size > 0 {
		percent = min(100, 100*p.read/p.size)
	}
	switch {
	case p.size == 0 && p.terminal:
		fmt.Fprintf(p.to, "\r%d exchanges", p.count)
	case p.terminal:
		full := int(percent * barWidth / 100)
		fmt.Fprintf(p.to, "\r[%s%s] %3d %%  %d exchanges", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), percent, p.count)
	case p.size == 0:
		fmt.Fprintf(p.to, "%d exchanges\n", p.count)
	default:
		fmt.Fprintf(p.to, "%d exchanges, %d %% of the file\n", p.count, percent)
	}
}

// close shows where it ended.
func (p *progress) close() {
	if p.terminal {
		p.show()
		fmt.Fprintln(p.to)
	}
}
