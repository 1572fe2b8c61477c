package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	largeBytes = 10_000_000
	// largeAlone is how many transfers in a row a round has in each direction.
	largeAlone = 10
	// largePath is the first attachment after those of the fixture.
	largePath   = "/rest/bug/attachment/16"
	largeUpload = "/rest/bug/1/attachment"
)

// directions are those of large attachments.
var directions = []string{"down", "up"}

// large measures attachments of 10 MB in both directions: one client for the time, and four for CPU and memory.
func large(ctx context.Context, b *bench) error {
	tracker, servers, stop, err := b.before(ctx)
	if err != nil {
		return err
	}
	defer stop()
	b.report.title("large: attachments of 10 MB (13 MB of base64), no access log")
	body := upload()
	for _, each := range append([]*server{tracker}, servers...) {
		for _, direction := range []string{"up", "down"} {
			if _, err := transfer(ctx, client(1), each, direction, body); err != nil {
				return fmt.Errorf("%s, %s: %w", each.name, direction, err)
			}
		}
	}
	var t table
	for range b.rounds {
		for _, direction := range directions {
			for _, each := range servers {
				if err := b.largeTurn(ctx, &t, each, direction, body); err != nil {
					return fmt.Errorf("%s, %s: %w", each.name, direction, err)
				}
			}
		}
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: "down c4 CPU s per GB", by: nginxName, bound: 1.1}, goal{row: "up c4 CPU s per GB", by: nginxName, bound: 2},
		goal{row: "up c1 p50 ms", by: goproxyName, bound: 1.7}, goal{row: "down c4 peak MB", bound: 40}, goal{row: "up c4 peak MB", bound: 40})
	return nil
}

// largeTurn measures one direction through one server.
func (b *bench) largeTurn(ctx context.Context, t *table, through *server, direction string, body []byte) error {
	alone := client(1)
	defer alone.CloseIdleConnections()
	var took []float64
	for range largeAlone {
		one, err := transfer(ctx, alone, through, direction, body)
		if err != nil {
			return err
		}
		took = append(took, one.Seconds()*1000)
	}
	t.add(direction+" c1 p50 ms", through.name, percentile(took, .5))
	if err := through.forgetPeak(); err != nil {
		return err
	}
	before, err := through.cpu()
	if err != nil {
		return err
	}
	end := time.Now().Add(b.length)
	times, err := together(4, func(int) (times []time.Duration, err error) {
		own := client(1)
		defer own.CloseIdleConnections()
		for len(times) == 0 || time.Now().Before(end) {
			one, err := transfer(ctx, own, through, direction, body)
			if err != nil {
				return nil, err
			}
			times = append(times, one)
		}
		return times, nil
	})
	if err != nil {
		return err
	}
	after, err := through.cpu()
	if err != nil {
		return err
	}
	peak, err := through.memory("VmHWM")
	t.add(direction+" c4 CPU s per GB", through.name, (after-before).Seconds()/(float64(len(times))*largeBytes/1e9))
	t.add(direction+" c4 peak MB", through.name, float64(peak)/1e6)
	return err
}

// transfer sends the attachment, or reads it.
func transfer(ctx context.Context, from *http.Client, through *server, direction string, body []byte) (time.Duration, error) {
	method, path, want, content := http.MethodGet, largePath, http.StatusOK, io.Reader(http.NoBody)
	if direction == "up" {
		method, path, want, content = http.MethodPost, largeUpload, http.StatusCreated, bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, withKey(through.url(path), otherKeys[0]), content)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	seen, err := do(from, r)
	if err == nil && (seen.status != want || direction == "down" && seen.size < largeBytes*4/3) {
		err = fmt.Errorf("the response was %d with %d bytes", seen.status, seen.size)
	}
	return seen.took, err
}

// upload makes the body of a request with a new attachment, the same each time.
func upload() []byte {
	content := make([]byte, largeBytes)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(content) // it never fails
	body := append([]byte(`{"ids":[1],"file_name":"large.bin","summary":"large","content_type":"application/octet-stream","data":"`),
		base64.StdEncoding.EncodeToString(content)...)
	return append(body, `"}`...)
}
