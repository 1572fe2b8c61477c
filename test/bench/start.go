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

// refused reads keys that are not cached, one for each client, while the tracker refuses connections.
func refused(ctx context.Context, b *bench) error {
	servers, stop, err := b.peers(ctx, refusedTracker, false)
	if err != nil {
		return err
	}
	defer stop()
	b.report.title(fmt.Sprintf("refused: a tracker that refuses connections, keys that are not cached, %d clients with %d reads each, no access log",
		refusedClients, refusedReads))
	var t table
	for range b.rounds {
		for _, each := range servers {
			address := func(n int) string { return each.url(fmt.Sprint(hotPath, n)) } // nginx does not fetch one key twice at a time
			responses, err := crowd{clients: refusedClients, times: refusedReads, key: key, address: address, prelude: address}.read(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
			for _, one := range responses {
				if one.status != http.StatusServiceUnavailable && one.status != http.StatusBadGateway {
					return fmt.Errorf("%s: a response was %d", each.name, one.status)
				}
			}
			took := milliseconds(responses)
			t.add("p50 ms of the 502 or 503", each.name, percentile(took, .5))
			t.add("p99 ms of the 502 or 503", each.name, percentile(took, .99))
		}
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: "p50 ms of the 502 or 503", bound: .8})
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
