package fastpath

import (
	"context"
	"net"
	"testing"
	"time"
)

// However many clients read nothing of their responses, closing their connections takes closeTime and not that for each.
func TestCloseTimeIsShared(t *testing.T) {
	const many = 20
	inner, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	outer, stuck := Listener(inner, nil, nil), make(chan *conn, many)
	for range many {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		accepted, err := outer.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := accepted.(*conn)
		c.serving.Lock()
		go func() {
			defer c.serving.Unlock()
			stuck <- c
			c.send(make([]byte, 64<<20), time.Hour)
		}()
	}
	start := time.Now()
	for range many {
		_ = (<-stuck).Close() // the response that failed has closed it already
	}
	if took := time.Since(start); took > 10*closeTime {
		t.Errorf("it took %v", took)
	}
}
