package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	coldClients = 500
	coldDelay   = 200 * time.Millisecond
)

// cold has many clients read one key that is not cached, from each server, and from two processes of Portico on one Redis.
func cold(ctx context.Context, b *bench) error {
	front, tracker, stop, err := b.cannedHere(ctx, "/rest/flag_type/", coldDelay)
	if err != nil {
		return err
	}
	defer stop()
	servers, end, err := b.peers(ctx, tracker, false)
	if err != nil {
		return err
	}
	defer end()
	redis, err := b.redis(ctx)
	if err != nil {
		return err
	}
	defer redis.stop()
	var pair []*server
	for range 2 {
		one, err := b.facade(ctx, facade{name: "portico x 2", tracker: tracker, redis: "redis://" + redis.address + "/0", level: "warn"})
		if err != nil {
			return err
		}
		defer one.stop() //nolint:gocritic // two of them, for as long as the experiment takes
		pair = append(pair, one)
	}
	b.report.title(fmt.Sprintf("cold: %d clients on one key that is not cached, a tracker that takes %s, no access log", coldClients, coldDelay))
	var t table
	for round := range min(b.rounds, len(otherKeys)) {
		for _, each := range servers {
			if err := coldCrowd(ctx, front, &t, []*server{each}, otherKeys[round]); err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
		}
		if err := coldCrowd(ctx, front, &t, pair, otherKeys[round]); err != nil {
			return fmt.Errorf("two processes: %w", err)
		}
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: coldRequests, bound: 1}, goal{row: "p99 ms", bound: 230})
	return nil
}

// coldRequests counts requests at the tracker.
const coldRequests = "requests to the tracker"

// coldCrowd has all clients read at once, as the user with a key.
func coldCrowd(ctx context.Context, front *canned, t *table, servers []*server, key string) error {
	front.delayed.Store(0)
	responses, err := crowd{
		clients: coldClients, times: 1, key: key,
		address: func(n int) string { return servers[n%len(servers)].url(hotPath) },
		prelude: func(n int) string { return servers[n%len(servers)].url(noPath) },
	}.read(ctx)
	if err != nil {
		return err
	}
	if err := allGood(responses); err != nil {
		return err
	}
	t.add(coldRequests, servers[0].name, float64(front.delayed.Load()))
	t.add("p99 ms", servers[0].name, percentile(milliseconds(responses), .99))
	return nil
}

// allGood reports a response that is not 200.
func allGood(responses []seen) error {
	for _, each := range responses {
		if each.status != http.StatusOK {
			return fmt.Errorf("a response was %d, %s", each.status, each.cache)
		}
	}
	return nil
}
