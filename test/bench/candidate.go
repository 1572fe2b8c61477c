package main

import (
	"context"
	"net"
	"strings"
	"sync"
)

// The ways in which a candidate is sick.
const (
	candidateNone  = "none"
	candidateWell  = "well"
	candidateHung  = "hung"
	candidateFlood = "flooding"
	candidateReset = "resetting"
	candidateDead  = "dead"
)

// candidate gives the address of a second tracker, well or sick.
func (b *bench) candidate(ctx context.Context, failure string) (address string, stop func(), err error) {
	if failure == candidateWell {
		well, err := b.tracker(ctx)
		if err != nil {
			return "", nil, err
		}
		return well.address, well.stop, nil
	}
	if failure == candidateDead || failure == candidateNone {
		address, err = freeAddress(ctx)
		return address, func() {}, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { misbehave(conn, failure, ended) })
		}
	})
	return listener.Addr().String(), func() { close(ended); _ = listener.Close(); work.Wait() }, nil
}

// misbehave does to one connection what a sick candidate does.
func misbehave(conn net.Conn, failure string, ended <-chan struct{}) {
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 64<<10)); err != nil {
		return
	}
	switch failure {
	case candidateHung:
		<-ended
	case candidateReset:
		_ = conn.(*net.TCPConn).SetLinger(0)
	case candidateFlood:
		piece := []byte(strings.Repeat(" ", 64<<10))
		_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"))
		for err == nil {
			_, err = conn.Write(piece)
			select {
			case <-ended:
				return
			default:
			}
		}
	}
}
