package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// The reference tracker holds everything in memory. So that it can be killed and still tell what it had done, this
// binary can be started as one that writes its journal to a file before any answer leaves.
const (
	journalVariable = "FAULTS_JOURNAL"
	listenVariable  = "FAULTS_LISTEN"
)

func startKeepingTracker(t testing.TB, file string) (p *process.Process, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address = process.FreeAddress(t)
	return process.Launch(t, process.Spec{
		Program: self, Env: []string{journalVariable + "=" + file, listenVariable + "=" + address}, Fails: true,
		Ready: func(*process.Process) bool { return process.Listens(address) },
	}), address
}

// keepingTracker is that tracker.
func keepingTracker(file, address string) int {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options := tracker.Options{Seed: tracker.SeedFixture}
	options.Params.MaxAttachmentSize = 20000
	k := &keeper{tracker: tracker.New(options), file: out}
	if err := http.ListenAndServe(address, k); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

type keeper struct {
	tracker *tracker.Server
	mu      sync.Mutex
	file    *os.File
	kept    int
}

// ServeHTTP implements http.Handler.
func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.tracker.ServeHTTP(&keepingWriter{w, k}, r)
}

// keep writes what is new in the journal.
func (k *keeper) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.tracker.Journal()
	for _, e := range all[min(k.kept, len(all)):] {
		line, _ := json.Marshal(e)
		_, _ = k.file.Write(append(line, '\n'))
	}
	k.kept = len(all)
}

// keepingWriter keeps the journal before a byte of an answer leaves.
type keepingWriter struct {
	http.ResponseWriter
	keeper *keeper
}

func (w *keepingWriter) WriteHeader(status int) {
	w.keeper.keep()
	w.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher.
func (w *keepingWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// Hijack implements http.Hijacker.
func (w *keepingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.keeper.keep()
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
