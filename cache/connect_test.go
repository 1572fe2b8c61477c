package cache

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"
)

// TestNobodyWaitsForAConnection: however long making one may take, a read does not
// wait for it, nor does the end.
func TestNobodyWaitsForAConnection(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			defer connection.Close()
		}
	})
	defer accepting.Wait()
	defer silent.Close()
	options := Options{Redis: Redis{Addrs: []string{silent.Addr().String()}, TLS: &tls.Config{ServerName: "h"}, DialTimeout: time.Minute}}
	start := time.Now()
	c, err := New(&fakeTracker{}, options)
	must(t, err)
	for range 5 {
		mustAsk(t, c, withKey("k"))
	}
	must(t, c.Close())
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("five reads took %s", took)
	}
}
