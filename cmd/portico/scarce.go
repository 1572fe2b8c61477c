package main

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// scarceEvery is how often it is said that there are no files left.
const scarceEvery = time.Minute

// scarceListener tells operators when no more connections can be taken because files have run out. net/http tries again by itself,
// and what it says of that is among what it says of clients, which few want to see.
type scarceListener struct {
	net.Listener
	name   string
	logger *slog.Logger
	// told is when it was said last, in nanoseconds.
	told atomic.Int64
}

// Accept implements net.Listener.
func (l *scarceListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		now, told := time.Now().UnixNano(), l.told.Load()
		if (told == 0 || now-told >= int64(scarceEvery)) && l.told.CompareAndSwap(told, now) {
			l.logger.Warn("no connections can be taken: the limit of open files is reached", "listener", l.name, "cause", err)
		}
	}
	return conn, err
}
