package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const hotPath = "/rest/flag_type/TestProduct"

// hot measures the CPU time and the rate of cached flag type reads, with a log line for each request and without.
func hot(ctx context.Context, b *bench) error {
	tracker, stop, err := b.cannedTracker(ctx, "/none", 0)
	if err != nil {
		return err
	}
	defer stop()
	redis, err := b.redis(ctx)
	if err != nil {
		return err
	}
	defer redis.stop()
	for _, log := range []bool{true, false} {
		if err := b.hotPeers(ctx, tracker.url("/"), redis, log); err != nil {
			return err
		}
	}
	return nil
}

// hotPeers measures one way of logging. The plain proxy has no cache and is left out.
func (b *bench) hotPeers(ctx context.Context, tracker string, redis *server, log bool) error {
	level, what := "warn", "no access log"
	if log {
		level, what = "info", "one access log line for each request"
	}
	servers, stop, err := b.peers(ctx, tracker, log, nginxName, haproxyName, porticoName)
	if err != nil {
		return err
	}
	defer stop()
	shared, err := b.facade(ctx, facade{name: porticoName + " + redis", tracker: tracker, redis: "redis://" + redis.address + "/0", level: level})
	if err != nil {
		return err
	}
	defer shared.stop()
	b.report.title("hot: cached flag type reads, " + what)
	var t table
	before, err := commands(ctx, redis)
	if err != nil {
		return err
	}
	reads, counted := 0, 0
	for _, connections := range []int{1, 16, 128} {
		for range b.rounds * turns {
			for _, each := range append(servers, shared) {
				if err := warm(ctx, each.url(hotPath)); err != nil {
					return fmt.Errorf("%s: %w", each.name, err)
				}
				count, err := b.loadTurn(ctx, &t, each, connections, hotPath)
				if err != nil {
					return err
				}
				if each == shared {
					reads += count
				}
			}
		}
	}
	if counted, err = commands(ctx, redis); err != nil {
		return err
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: cpuRow(16), by: nginxName, bound: 1.1}, goal{row: cpuRow(128), by: nginxName, bound: 1.1},
		goal{row: rateRow(128), by: nginxName, bound: .9, minimum: true})
	calls := counted - before - 1 // without the command that counts them
	b.report.target(fmt.Sprintf("calls of redis-server per read (%d in %d reads)", calls, reads), float64(calls)/float64(reads), 0.01)
	return nil
}

const p50Row = "c1 p50 microseconds"

func cpuRow(connections int) string  { return fmt.Sprintf("c%d CPU microseconds", connections) }
func rateRow(connections int) string { return fmt.Sprintf("c%d responses per second", connections) }

// loadTurn loads one server for a turn and adds CPU for each response, the rate and the median latency to the table. Turns are short, so that
// a machine that changes meanwhile changes for all.
func (b *bench) loadTurn(ctx context.Context, t *table, of *server, connections int, path string) (count int, err error) {
	var seen loaded
	err = of.perResponse(t, cpuRow(connections), func() (int, error) {
		seen, err = b.load(ctx, connections, b.length/turns, of.url(path))
		return seen.count, err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", of.name, err)
	}
	t.add(rateRow(connections), of.name, seen.rate)
	if connections == 1 {
		t.add(p50Row, of.name, float64(seen.p50)/float64(time.Microsecond))
	}
	return seen.count, nil
}

// warm reads until the response is from the cache.
func warm(ctx context.Context, address string) error {
	from, err := openLine(ctx, address)
	if err != nil {
		return err
	}
	defer from.close()
	for range 20 {
		response, err := from.get(address, key)
		if err != nil {
			return err
		}
		if strings.Contains(strings.ToLower(response.cache), "hit") {
			return nil
		}
	}
	return fmt.Errorf("%s is never served from the cache", address)
}
