package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/cmd/portico/config"
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
		l := newBoundedListener(&refusing{err: err}, "clients", 10, slog.New(slog.NewTextHandler(&log, nil)))
		for range 5 {
			if _, got := l.Accept(); got != err {
				t.Errorf("%v became %v", err, got)
			}
		}
		if got := strings.Count(log.String(), "level=WARN"); got != want {
			t.Errorf("%v is told of %d times, want %d: %s", err, got, want, log.String())
		}
	}
}

// A connection without a request does not delay the end.
func TestSilentConnectionsAreClosed(t *testing.T) {
	var log bytes.Buffer
	l, err := Listen("clients", "127.0.0.1:0", http.NotFoundHandler(), config.Default(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run() }()
	client, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	response, err := http.Get(l.URL()) // connections are accepted in their order
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than the five seconds of Shutdown
	defer cancel()
	if err := l.Close(ctx); err != nil || log.Len() != 0 {
		t.Errorf("%v %s", err, &log)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// At the limit the connection that has waited for the longest time gives way, but not before it had time to send a request.
func TestLongestWaitingGivesWay(t *testing.T) {
	l := newBoundedListener(nil, "clients", 2, slog.New(slog.DiscardHandler))
	var ours, clients [3]net.Conn
	for i := range ours {
		ours[i], clients[i] = net.Pipe()
		defer clients[i].Close()
	}
	l.connState(ours[0], http.StateNew)
	l.connState(ours[1], http.StateNew)
	l.connState(ours[0], http.StateActive)
	if free, wait := l.freeCapacity(); free || wait <= 0 || wait > minWaiting {
		t.Errorf("a connection that has just come; capacity %t after %v", free, wait)
	}
	l.all[ours[1]].since = time.Now().Add(-minWaiting)
	if free, _ := l.freeCapacity(); !free {
		t.Error("a connection without a request does not give way")
	}
	if _, err := clients[1].Read(make([]byte, 1)); err == nil {
		t.Error("it is still open")
	}
	l.connState(ours[1], http.StateIdle) // its last request ended meanwhile
	l.connState(ours[1], http.StateClosed)
	l.connState(ours[2], http.StateNew)
	l.connState(ours[2], http.StateActive)
	if free, wait := l.freeCapacity(); free || wait != minWaiting {
		t.Errorf("two connections with requests; capacity %t after %v", free, wait)
	}
	l.connState(ours[0], http.StateClosed)
	l.connState(ours[2], http.StateClosed)
	if l.open != 0 || len(l.all) != 0 || l.waiting.Len() != 0 {
		t.Errorf("at the end %d are open, %d known and %d waiting", l.open, len(l.all), l.waiting.Len())
	}
}

// A connection that waits for capacity when the listener is closed is closed too.
func TestClosedListenerKeepsNoConnection(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newBoundedListener(socket, "clients", 2, slog.New(slog.DiscardHandler))
	l.open = l.limit
	client, err := net.Dial("tcp", socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if conn != nil {
			t.Error("a connection beyond the limit is accepted")
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("Accept does not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept gives %v", err)
	}
	if err := client.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

// The write deadline of one response does not hold for the next one.
func TestIdleConnectionHasNoWriteDeadline(t *testing.T) {
	l := newBoundedListener(nil, "clients", 2, slog.New(slog.DiscardHandler))
	ours, client := net.Pipe()
	defer ours.Close()
	defer client.Close()
	l.connState(ours, http.StateNew)
	l.connState(ours, http.StateActive)
	if err := ours.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	l.connState(ours, http.StateIdle)
	go func() { _, _ = client.Read(make([]byte, 1)) }()
	if _, err := ours.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}
