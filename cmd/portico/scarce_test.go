package main

import (
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// refusing is a listener that only fails.
type refusing struct {
	net.Listener
	err error
}

func (r *refusing) Accept() (net.Conn, error) { return nil, r.err }

func TestOperatorsHearThatFilesHaveRunOut(t *testing.T) {
	for err, want := range map[error]int{
		syscall.EMFILE: 1, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ENFILE)}: 1,
		syscall.ECONNABORTED: 0, net.ErrClosed: 0,
	} {
		var log strings.Builder
		l := &scarceListener{Listener: &refusing{err: err}, name: "clients", logger: slog.New(slog.NewTextHandler(&log, nil))}
		for range 5 {
			if _, got := l.Accept(); got != err {
				t.Errorf("%v became %v", err, got)
			}
		}
		if got := strings.Count(log.String(), "level=WARN"); got != want {
			t.Errorf("%v is told of %d times, want %d: %s", err, got, want, log.String())
		}
		l.told.Add(-int64(scarceEvery))
		_, _ = l.Accept()
		if got := strings.Count(log.String(), "level=WARN"); got != 2*want {
			t.Errorf("a minute later %v is told of %d times, want %d", err, got, 2*want)
		}
	}
}
