package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// key is one of the fixture's: of a user with no rights beyond those of everybody.
const key = "PlainKey00000000000000000000000000000000"

// otherKeys are those of ten other users, each of whom has answers of his own.
var otherKeys = []string{
	"AdminKey00000000000000000000000000000000", "EditorKey0000000000000000000000000000000",
	"InsiderKey000000000000000000000000000000", "DevKey0000000000000000000000000000000000",
	"NothingKey000000000000000000000000000000", "SecretKey0000000000000000000000000000000",
	"GranterKey000000000000000000000000000000", "RequesterKey0000000000000000000000000000",
	"PeditorKey000000000000000000000000000000", "ExinsiderKey0000000000000000000000000000",
}

// turns is into how many pieces a round is cut where peers are loaded one after the other.
const turns = 4

// loaded is what a load generator saw.
type loaded struct {
	count    int
	rate     float64 // responses in a second
	p50, p99 time.Duration
}

var (
	wrkRequests = regexp.MustCompile(`(\d+) requests in ([0-9.]+m?s|[0-9.]+m)`)
	wrkLatency  = regexp.MustCompile(`(?m)^ +(50|99)% +([0-9.]+[a-z]+)$`)
)

// wrk loads an address with the key. A status other than success is an error.
func wrk(ctx context.Context, connections int, length time.Duration, address string) (l loaded, err error) {
	command := exec.CommandContext(ctx, "wrk", "--threads", "1", "--connections", strconv.Itoa(connections), "--timeout", "60s", "--latency",
		"--duration", strconv.Itoa(max(1, int(length.Seconds())))+"s", withKey(address, key))
	out, err := command.CombinedOutput()
	if err != nil {
		return l, fmt.Errorf("run wrk: %w: %s", err, out)
	}
	found := wrkRequests.FindSubmatch(out)
	if found == nil || strings.Contains(string(out), "Non-2xx") || strings.Contains(string(out), "Socket errors") {
		return l, fmt.Errorf("wrk met errors at %s: %s", address, out)
	}
	l.count, err = strconv.Atoi(string(found[1]))
	if err != nil || l.count == 0 {
		return l, fmt.Errorf("wrk got no response: %s", out)
	}
	took, err := time.ParseDuration(string(found[2]))
	if err != nil {
		return l, fmt.Errorf("read what wrk says: %w", err)
	}
	l.rate = float64(l.count) / took.Seconds()
	for _, each := range wrkLatency.FindAllSubmatch(out, -1) {
		into := &l.p50
		if string(each[1]) == "99" {
			into = &l.p99
		}
		if *into, err = time.ParseDuration(string(each[2])); err != nil {
			return l, fmt.Errorf("read what wrk says: %w", err)
		}
	}
	return l, nil
}

// client returns an HTTP client with connections of its own.
func client(connections int) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		MaxIdleConnsPerHost: connections, DisableCompression: true, ReadBufferSize: 64 << 10,
	}}
}

// seen is one response.
type seen struct {
	status int
	cache  string
	size   int64
	took   time.Duration
}

// withKey adds a key in the one form that the tracker understands too, so that both peers give the same answers.
func withKey(address, key string) string { return address + "?Bugzilla_api_key=" + key }

func do(from *http.Client, r *http.Request) (seen, error) {
	begun := time.Now()
	response, err := from.Do(r)
	if err != nil {
		return seen{}, err
	}
	// Without the struct, io.Discard would read in pieces of 8 KiB.
	size, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, make([]byte, 256<<10))
	return seen{
		response.StatusCode, response.Header.Get("Cache-Status") + response.Header.Get("X-Cache"), size, time.Since(begun),
	}, errors.Join(err, response.Body.Close())
}

// crowd is a number of clients that read at once.
type crowd struct {
	clients int
	// each of them reads so often.
	times int
	key   string
	// address gives what the nth of them reads, prelude what it reads before the clock begins, to have a connection.
	address, prelude func(n int) string
}

// read returns all responses. Clients use bare connections, because http.Client costs several times what is to be measured, and both
// share the cores. All are connected before the first of them reads.
func (c crowd) read(ctx context.Context) ([]seen, error) {
	readers, err := together(c.clients, func(n int) ([]func() ([]seen, error), error) {
		line, err := openLine(ctx, c.prelude(n))
		if err == nil {
			_, err = line.get(c.prelude(n), c.key)
		}
		return []func() ([]seen, error){func() (all []seen, err error) {
			defer line.close()
			for i := 0; i < c.times && err == nil; i++ {
				var one seen
				one, err = line.get(c.address(n), c.key)
				all = append(all, one)
			}
			return all, err
		}}, err
	})
	if err != nil {
		return nil, err
	}
	return together(len(readers), func(n int) ([]seen, error) { return readers[n]() })
}

// listPath has the attachments of a bug, which are never cached.
const listPath = "/rest/bug/1/attachment"

// noPath is answered by Portico itself.
const noPath = "/rest/flag_type"

// milliseconds gives how long the answers took.
func milliseconds(answers []seen) []float64 {
	figures := make([]float64, 0, len(answers))
	for _, each := range answers {
		figures = append(figures, each.took.Seconds()*1000)
	}
	return figures
}

// together runs clients at the same time and collects what they return, and the first error.
func together[T any](clients int, one func(n int) ([]T, error)) (all []T, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for n := range clients {
		running.Go(func() {
			seen, failed := one(n)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, seen...)
			if err == nil {
				err = failed
			}
		})
	}
	running.Wait()
	return all, err
}
