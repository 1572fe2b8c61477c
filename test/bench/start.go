package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	// refusedTracker is a port of a service that Debian does not install.
	refusedTracker = "http://127.0.0.1:1/"
	refusedClients = 16
	refusedReads   = 100
	// settling is how long a server is idle before its memory is read.
	settling = 2 * time.Second
)

// refused reads keys that are not cached, one for each client, while the tracker refuses connections, and attachments while another read has the
// only slot of Portico's limit.
func refused(ctx context.Context, b *bench) error {
	servers, stop, err := b.peers(ctx, refusedTracker, false)
	if err != nil {
		return err
	}
	defer stop()
	tracker, end, err := b.cannedTracker(ctx, ordinaryPath, time.Hour)
	if err != nil {
		return err
	}
	defer end()
	full, err := b.facade(ctx, facade{
		name: porticoName + ", full", tracker: tracker.url("/"), redis: "embedded", level: "warn",
		more: []string{"limits: {concurrency: 1, max_concurrency: 1, queue: 0}"},
	})
	if err != nil {
		return err
	}
	defer full.stop()
	running, leave := context.WithCancel(ctx)
	defer leave()
	line, err := openLine(running, full.url(""))
	if err != nil {
		return err
	}
	defer line.close()
	go func() { // it ends with its connection
		for status := http.StatusServiceUnavailable; status == http.StatusServiceUnavailable; { // while the first request for the version has the slot
			one, _ := line.get(full.url(ordinaryPath), key)
			status = one.status
		}
	}()
	time.Sleep(settling / 4)
	b.report.title(fmt.Sprintf("refused: %d clients with %d reads each, of a tracker that refuses connections and of a Portico whose limit is full",
		refusedClients, refusedReads))
	var t table
	for range b.rounds {
		for _, each := range append(servers, full) {
			address := func(n int) string { return each.url(fmt.Sprint(hotPath, n)) } // nginx does not fetch one key twice at a time
			if each == full {
				address = func(int) string { return each.url(ordinaryPath) }
			}
			if err := refusedTurn(ctx, &t, each, address); err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
		}
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: refusedRow, bound: .8})
	limited, _ := t.median(refusedRow, full.name)
	b.report.target("p50 ms of the 503 of a full limit", limited, .3)
	return nil
}

const refusedRow = "p50 ms of the 502 or 503"

// refusedTurn measures one server, which refuses all reads.
func refusedTurn(ctx context.Context, t *table, of *server, address func(n int) string) error {
	var responses []seen
	err := of.perResponse(t, "CPU microseconds", func() (_ int, err error) {
		responses, err = crowd{clients: refusedClients, times: refusedReads, key: key, address: address, prelude: address}.read(ctx)
		return len(responses), err
	})
	if err != nil {
		return err
	}
	for _, one := range responses {
		if one.status != http.StatusServiceUnavailable && one.status != http.StatusBadGateway {
			return fmt.Errorf("a response was %d", one.status)
		}
	}
	t.add(refusedRow, of.name, percentile(milliseconds(responses), .5))
	t.add("p99 ms", of.name, percentile(milliseconds(responses), .99))
	return nil
}

// startUp measures how soon a server accepts connections, its memory when it is idle, and the size of its program.
func startUp(ctx context.Context, b *bench) error {
	tracker, stop, err := b.cannedTracker(ctx, "/none", 0)
	if err != nil {
		return err
	}
	defer stop()
	b.report.title("start: until the first connection is accepted, resident memory after " + settling.String() + " without requests")
	var t table
	for range b.rounds {
		servers, end, err := b.peers(ctx, tracker.url("/"), false)
		if err != nil {
			return err
		}
		time.Sleep(settling)
		for _, each := range servers {
			memory, err := each.memory("VmRSS")
			program, unread := os.Stat(fmt.Sprintf("/proc/%d/exe", each.command.Process.Pid))
			if err = errors.Join(err, unread); err != nil {
				end()
				return fmt.Errorf("%s: %w", each.name, err)
			}
			t.add("start ms", each.name, each.ready.Seconds()*1000)
			t.add("idle MB", each.name, float64(memory)/1e6)
			t.add("program MB", each.name, float64(program.Size())/1e6)
		}
		end()
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: "start ms", bound: 20}, goal{row: "idle MB", bound: 24}, goal{row: "program MB", bound: 40})
	return nil
}
