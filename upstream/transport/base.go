package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// BaseOptions sets the connections to one tracker. Zero fields mean the default in brackets.
type BaseOptions struct {
	DialTimeout            time.Duration // for one connection [3s]
	TLSHandshakeTimeout    time.Duration // [5s]
	ResponseHeaderTimeout  time.Duration // from the last byte of the request to the end of the header, and the longest pause in taking it [30s]
	BodyIdleTimeout        time.Duration // longest silence inside an answer, counted only while somebody reads [ResponseHeaderTimeout, at most 30s]
	IdleConnTimeout        time.Duration // how long reads keep a connection; under Apache's KeepAliveTimeout of 5s [4s]
	MaxIdleConns           int           // kept connections, for reads only [32]
	MaxResponseHeaderBytes int64         // [65536]
	TLS                    *tls.Config   // is cloned
	// Dial replaces the dialer: a Unix socket, a fixed address. It must heed its context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o BaseOptions) withDefaults() BaseOptions {
	o.DialTimeout = cmp.Or(o.DialTimeout, 3*time.Second)
	o.TLSHandshakeTimeout = cmp.Or(o.TLSHandshakeTimeout, 5*time.Second)
	o.ResponseHeaderTimeout = cmp.Or(o.ResponseHeaderTimeout, 30*time.Second)
	o.BodyIdleTimeout = cmp.Or(o.BodyIdleTimeout, min(o.ResponseHeaderTimeout, 30*time.Second))
	o.IdleConnTimeout = cmp.Or(o.IdleConnTimeout, 4*time.Second)
	o.MaxIdleConns = cmp.Or(o.MaxIdleConns, 32)
	o.MaxResponseHeaderBytes = cmp.Or(o.MaxResponseHeaderBytes, 64<<10)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: o.DialTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	return o
}

// Validate reports everything that is wrong with the options at once.
func (o BaseOptions) Validate() error {
	return errors.Join(
		notNegative("dial timeout", o.DialTimeout),
		notNegative("TLS handshake timeout", o.TLSHandshakeTimeout),
		notNegative("response header timeout", o.ResponseHeaderTimeout),
		notNegative("body idle timeout", o.BodyIdleTimeout),
		notNegative("idle connection timeout", o.IdleConnTimeout),
		notNegative("kept connections", o.MaxIdleConns),
		notNegative("response header bytes", o.MaxResponseHeaderBytes),
	)
}

// Wire is the last link: HTTP/1.1 over its own connections, no proxy, no compression, no redirects.
//
// Reads share kept-alive connections. Every write has a connection of its own, because real trackers end kept
// ones without notice (clients.md section 4 row 18): net/http would either lose the write or send it twice. It sends reads
// again, which counts as a retry, so reads have connections of their own, too, when there is no retry left.
type Wire struct {
	o             BaseOptions
	reads, writes *http.Transport
}

// Base makes the last link of a chain.
func Base(o BaseOptions) *Wire {
	o = o.withDefaults()
	w := &Wire{o: o, reads: httpTransport(o), writes: httpTransport(o)}
	w.writes.DisableKeepAlives = true // never reused, so never replayed by net/http; sends Connection: close
	return w
}

func httpTransport(o BaseOptions) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	secure := o.TLS.Clone()
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if secure.ClientSessionCache == nil { // makes the extra handshakes of writes cheap
		secure.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            tappedDial(o),
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    o.TLSHandshakeTimeout,
		ResponseHeaderTimeout:  o.ResponseHeaderTimeout,
		IdleConnTimeout:        o.IdleConnTimeout,
		MaxIdleConns:           o.MaxIdleConns,
		MaxIdleConnsPerHost:    o.MaxIdleConns,
		MaxResponseHeaderBytes: o.MaxResponseHeaderBytes,
		DisableCompression:     true,
		ReadBufferSize:         connBuffer,
		WriteBufferSize:        connBuffer,
		Protocols:              &protocols,
	}
}

// connBuffer is enough for most heads of requests and answers. Longer ones take a second system call, and bodies go past
// it. Many calls at once wait for a slow tracker, and each has two of these.
const connBuffer = 1 << 10

func tappedDial(o BaseOptions) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
		defer cancel()
		conn, err := o.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tap{Conn: conn, pause: o.ResponseHeaderTimeout}, nil
	}
}

// RoundTrip sends one request once. Its errors, and those of the body, are *Error. A request body that blocks must
// heed the deadline itself: net/http waits for its Read to return before it gives up.
func (w *Wire) RoundTrip(req *http.Request) (*http.Response, error) {
	f := newFlight(req, w.o)
	via := w.reads
	if f.write || !marksOf(f.ctx).budget().left() {
		via = w.writes
	}
	resp, err := via.RoundTrip(f.outgoing(req))
	if err != nil {
		e := f.failed(err)
		f.cancel(nil)
		return nil, e
	}
	if e := f.strange(resp); e != nil {
		f.cancel(nil)
		return nil, e
	}
	resp.Body = f.body(resp.Body)
	return resp, nil
}

// CloseIdleConnections closes what reads have kept.
func (w *Wire) CloseIdleConnections() {
	w.reads.CloseIdleConnections()
	w.writes.CloseIdleConnections()
}

// withoutReplayKeys drops the headers that make net/http send a write again (DESIGN.md section 13), however they
// are spelled. The request of the caller stays as it is.
func withoutReplayKeys(h http.Header) http.Header {
	var clean http.Header
	for name := range h {
		if !strings.EqualFold(name, "Idempotency-Key") && !strings.EqualFold(name, "X-Idempotency-Key") {
			continue
		}
		if clean == nil {
			clean = h.Clone()
		}
		delete(clean, name)
	}
	if clean == nil {
		return h
	}
	return clean
}
