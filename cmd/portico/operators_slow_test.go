package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestOperatorsWhoStopSending: as of clients, no more is waited for what is sent to the other listener than timeouts.read.
func TestOperatorsWhoStopSending(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntimeouts: {read: 100ms}\n")
	_, operators := serveConfig(t, file)
	conn, err := net.Dial("tcp", operators)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "POST /cache/purge HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\na")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal("there is no answer: ", err)
	}
	_ = answer.Body.Close()
}
