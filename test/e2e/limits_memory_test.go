package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// resident gives the memory of a process that is in RAM, in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("the memory of a process is read from /proc: ", err)
	}
	found := regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no resident memory in %s", status)
	}
	size, err := strconv.Atoi(string(found[1]))
	must(t, err)
	return size << 10
}

// openUploads begins requests with a body, sends the same beginning of it on each connection, and keeps them open.
func openUploads(t *testing.T, base, path string, count int, beginning string) []net.Conn {
	t.Helper()
	head := "POST " + path + " HTTP/1.1\r\nHost: portico.example\r\nContent-Type: application/json\r\nContent-Length: 10000000\r\n\r\n"
	connections := make([]net.Conn, count)
	var opening sync.WaitGroup
	for worker := range 8 {
		opening.Go(func() {
			for i := worker; i < count; i += 8 {
				connection, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), 30*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { connection.Close() })
				connections[i] = connection
				if _, err := io.WriteString(connection, head+beginning); err != nil {
					t.Error(err)
				}
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return connections
}

// drips sends one more byte on each connection and tells how many Portico has ended.
func drips(connections []net.Conn) (ended int) {
	for _, each := range connections {
		if _, err := io.WriteString(each, "A"); err != nil {
			ended++
		}
	}
	return ended
}

// A thousand anonymous uploads that send a little now and then hold no more memory than limits.body_memory and what
// a thousand connections take by themselves, and other clients are served meanwhile.
func TestDrippingUploadsHoldLittleMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, beginning string }{
		"a beginning":          {"/rest/bug/1/attachment", `{"file_name":"f","data":"` + strings.Repeat("A", 1<<10)},
		"more than any buffer": {"/rest/bug/1/attachment", `{"file_name":"f","data":"` + strings.Repeat("A", 100<<10)},
		"what passes through":  {"/xmlrpc.cgi", strings.Repeat("A", 100<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			_, tracker := startTracker(t, process.FreeAddress(t))
			p := startFacade(t, tracker, "LOG_LEVEL=info", "LIMITS_BODY_MEMORY=32MiB")
			p.get(t, "", "/rest/flag_type/TestProduct").ok(t, http.StatusOK)
			const uploads = 1000
			before := resident(t, p.PID())
			connections := openUploads(t, p.base, c.path, uploads, c.beginning)
			highest := 0
			for range 5 {
				drips(connections)
				time.Sleep(100 * time.Millisecond) // slowness itself is under test
				highest = max(highest, resident(t, p.PID()))
			}
			const allowed = 32<<20 + uploads*(40<<10)
			held := highest - before
			t.Logf("%d uploads hold %d MiB, %d KiB each", uploads, held>>20, held/uploads>>10)
			if held > allowed {
				t.Errorf("%d uploads hold %d MiB, more than %d", uploads, held>>20, allowed>>20)
			}
			p.post(t, "admin", "/rest/bug/1/attachment", upload(`"content_type":"text/plain"`)).ok(t, http.StatusCreated)
			p.get(t, "", "/rest/bug/attachment/4").ok(t, http.StatusOK)
		})
	}
}
