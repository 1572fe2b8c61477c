package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// line is one connection that is kept.
type line struct {
	conn   net.Conn
	reader *bufio.Reader
}

// openLine connects to the host of an address.
func openLine(ctx context.Context, address string) (*line, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", target.Host)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &line{conn, bufio.NewReaderSize(conn, 16<<10)}, nil
}

func (l *line) close() { _ = l.conn.Close() }

// get reads an address to its end.
func (l *line) get(address, as string) (seen, error) {
	target, err := url.Parse(withKey(address, as))
	if err != nil {
		return seen{}, err
	}
	request := "GET " + target.RequestURI() + " HTTP/1.1\r\nHost: " + target.Host + "\r\n\r\n"
	begun := time.Now()
	if err := l.conn.SetDeadline(begun.Add(time.Minute)); err != nil {
		return seen{}, err
	}
	if _, err := io.WriteString(l.conn, request); err != nil {
		return seen{}, fmt.Errorf("ask: %w", err)
	}
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		return seen{}, fmt.Errorf("read an answer: %w", err)
	}
	size, err := io.Copy(io.Discard, response.Body)
	return seen{response.StatusCode, response.Header.Get("Cache-Status") + response.Header.Get("X-Cache"), size, time.Since(begun)},
		errors.Join(err, response.Body.Close())
}
