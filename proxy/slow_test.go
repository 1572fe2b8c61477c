package proxy_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
)

const slowResponse = 4 << 20

// behindSlow serves a large response to clients that may pause for half a second.
func behindSlow(t *testing.T, window int) (*kept, <-chan proxy.Record) {
	t.Helper()
	watcher, records := finishing()
	base := serveFast(t, proxy.Options{
		Observer:    watcher,
		ClientPause: proxy.ClientPause{Taking: 500 * time.Millisecond},
		Tracker: responding(func() *mapping.Document {
			return document(`{"bugs":{},"attachments":{"1":{"summary":"` + strings.Repeat("s", slowResponse) + `"}}}`)
		}),
	}, time.Minute).URL // whose connections lie under others
	client := dial(t, base)
	if err := client.Conn.(*net.TCPConn).SetReadBuffer(window); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(client, "GET /rest/bug/attachment/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	return client, records
}

// A client is judged by what it takes, not by what waits for it inside the system.
func TestClientThatTakesNothing(t *testing.T) {
	t.Parallel()
	_, records := behindSlow(t, 4<<10)
	got := <-records
	if got.Reason != mapping.ReasonCanceled || runtime.GOOS == "linux" && got.Bytes > 1<<20 {
		t.Errorf("record %+v", got)
	}
}

// A client that takes a large response slowly, but steadily, gets it whole.
func TestSlowButSteadyDownload(t *testing.T) {
	t.Parallel()
	client, records := behindSlow(t, 64<<10)
	piece, taken := make([]byte, 64<<10), 0
	for {
		n, err := io.ReadFull(client, piece)
		if taken += n; err != nil {
			break
		}
		time.Sleep(30 * time.Millisecond) // that is what makes it slow
	}
	if got := <-records; taken < slowResponse || got.Reason != "" {
		t.Errorf("%d bytes were taken, record %+v", taken, got)
	}
}
