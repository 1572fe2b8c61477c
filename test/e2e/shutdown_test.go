package e2e

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
)

// held is a tracker that keeps requests for /held back until it is told to let go.
type held struct {
	base    string
	arrived chan struct{}
	letGo   chan struct{}
}

func holdingTracker(t *testing.T) *held {
	t.Helper()
	h := &held{arrived: make(chan struct{}, 10), letGo: make(chan struct{})}
	h.base = process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/held") {
			h.arrived <- struct{}{}
			select {
			case <-h.letGo:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "{}")
	})).String()
	return h
}

// status asks over a connection of its own; 0 means that there was no response.
func status(url string) int {
	got, _ := (&client{base: url}).try(10*time.Second, ask{})
	return got
}

func refusesConnections(base string) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}

// At SIGTERM /readyz fails, new connections are accepted for a while and then refused, and requests under way get a response.
func TestShutdownTurnsAwayBeforeItDrains(t *testing.T) {
	tracker := holdingTracker(t)
	f := process.Serve(t, []string{"TIMEOUTS_SHUTDOWN_DELAY=2s"}, "serve", "--tracker", tracker.base)
	answered := make(chan int, 1)
	go func() { answered <- status(f.Clients + "/rest/held") }()
	<-tracker.arrived
	f.Signal(t, syscall.SIGTERM)
	process.Eventually(t, "/readyz fails", func() bool { return status(f.Operators+"/readyz") == http.StatusServiceUnavailable })
	if got := status(f.Clients + "/rest/bug/1"); got != http.StatusOK {
		t.Errorf("a client that does not know yet that Portico ends gets %d", got)
	}
	process.Eventually(t, "new connections are refused", func() bool { return refusesConnections(f.Clients) })
	if f.Ended() {
		t.Fatal("it ended with a request under way")
	}
	close(tracker.letGo)
	if got := <-answered; got != http.StatusOK {
		t.Errorf("the request that was under way gets %d", got)
	}
	if code := f.Wait(t, 20*time.Second); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// A second signal does not wait for anything, and without one the wait for requests has an end.
func TestShutdownHasAnEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		signals int
		env     []string
	}{
		"while draining": {2, []string{"TIMEOUTS_DRAIN=5m"}},
		"limit":          {1, []string{"TIMEOUTS_DRAIN=200ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := holdingTracker(t)
			f := process.Serve(t, tt.env, "serve", "--tracker", tracker.base)
			go status(f.Clients + "/rest/held")
			<-tracker.arrived
			for range tt.signals {
				f.Signal(t, syscall.SIGTERM)
				process.Eventually(t, "it is shutting down", func() bool {
					return f.Ended() || status(f.Operators+"/readyz") == http.StatusServiceUnavailable
				})
			}
			process.Eventually(t, "it ends", f.Ended)
			close(tracker.letGo)
			if tt.signals > 1 {
				f.Kill(t) // says that its end is meant to be a bad one
			}
		})
	}
}

// The end of the program that reads the log loses lines, and nothing else.
func TestTheReaderOfTheLogEnds(t *testing.T) {
	const oneLine = `mkfifo "$0/log" && { head -n 1 "$0/log" & } && exec "$@" 2>"$0/log"`
	f := process.ServeVia(t, []string{"sh", "-c", oneLine, t.TempDir()}, nil, "serve", "--tracker", holdingTracker(t).base)
	for range 50 {
		if got := status(f.Clients + "/rest/bug/1"); got != http.StatusOK {
			t.Fatalf("a client gets %d", got)
		}
		time.Sleep(10 * time.Millisecond) // the reader ends by itself, and lines of the log are written a moment later
	}
}
