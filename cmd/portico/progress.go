package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress shows on a terminal what a command is doing. It is the writer of what else is written there meanwhile.
type progress struct {
	to   io.Writer
	stop func()

	mu    sync.Mutex
	shown bool // a text stands in the last line
}

const (
	// quietTime is how long a command shows no progress, and progressPause is the time between two texts.
	quietTime     = 2 * time.Second
	progressPause = 200 * time.Millisecond
)

// clearLine makes a terminal write its last line again.
const clearLine = "\r\x1b[K"

// progress begins to show what text returns. The caller calls stop.
func (e environment) progress(text func() string) *progress {
	p := &progress{to: e.stderr, stop: func() {}}
	if !isTerminal(e.stderr) {
		return p
	}
	stopped := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		for pause := quietTime; ; pause = progressPause {
			select {
			case <-stopped:
				return
			case <-time.After(pause):
				p.mu.Lock()
				fmt.Fprint(p.to, clearLine+text())
				p.shown = true
				p.mu.Unlock()
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		close(stopped)
		showing.Wait()
		_, _ = p.Write(nil)
	})
	return p
}

// Write implements io.Writer.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.to, clearLine)
	}
	p.shown = false
	return p.to.Write(text)
}
