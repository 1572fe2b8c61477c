package proxy

import (
	"context"
	"net"
	"testing"
	"time"
)

// However many clients read nothing of their answers, closing their connections takes one moment and not one for each.
func TestPartingIsOneMomentForAll(t *testing.T) {
	const many = 20
	inner, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	outer, stuck := Listener(inner), make(chan *conn, many)
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
		c.answering.Lock()
		go func() {
			defer c.answering.Unlock()
			stuck <- c
			c.reply(make([]byte, 64<<20), time.Hour)
		}()
	}
	start := time.Now()
	for range many {
		_ = (<-stuck).Close() // the answer that failed has closed it already
	}
	if took := time.Since(start); took > 10*parted {
		t.Errorf("it took %v", took)
	}
}
