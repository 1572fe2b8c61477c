package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	coldClients = 500
	coldDelay   = 200 * time.Millisecond
)

// cold has a crowd ask for one key that nobody has, from one process and from two on one Redis.
func cold(ctx context.Context, b *bench) error {
	front, stop, err := b.gatedTracker(ctx)
	if err != nil {
		return err
	}
	defer stop()
	front.delay.Store(int64(coldDelay))
	redis, err := b.redis(ctx)
	if err != nil {
		return err
	}
	defer redis.stop()
	var servers []*server
	defer func() {
		for _, one := range servers {
			one.stop()
		}
	}()
	for i := range 2 {
		one, err := b.facade(ctx, facade{
			name: fmt.Sprint("portico ", i), tracker: "http://" + front.address + "/", redis: "redis://" + redis.address + "/0", level: "info",
		})
		if err != nil {
			return err
		}
		servers = append(servers, one)
	}
	for _, processes := range []int{1, 2} {
		if err := b.coldCrowds(ctx, front, servers[:processes]); err != nil {
			return err
		}
	}
	return nil
}

// coldCrowds asks several times, as somebody else each time.
func (b *bench) coldCrowds(ctx context.Context, front *gate, servers []*server) error {
	b.report.title(fmt.Sprintf("%d clients on one cold key, a tracker that takes %s, processes: %d", coldClients, coldDelay, len(servers)))
	most := int64(0)
	var ratios []float64
	for round := range min(b.rounds, len(otherKeys)/2) {
		front.reads.Store(0)
		front.slowest()
		answers, err := crowd{
			clients: coldClients, times: 1, key: otherKeys[round+len(otherKeys)/2*(len(servers)-1)],
			address: func(n int) string { return servers[n%len(servers)].url(hotPath) },
			prelude: func(n int) string { return servers[n%len(servers)].url(noPath) },
		}.read(ctx)
		if err != nil {
			return err
		}
		if err := allGood(answers); err != nil {
			return err
		}
		took, p99 := front.slowest(), percentile(milliseconds(answers), .99)
		b.report.say("asked of the tracker: %d, its time %6.1f ms, p99 of the clients %6.1f ms, slowest %6.1f ms",
			front.reads.Load(), took.Seconds()*1000, p99, percentile(milliseconds(answers), 1))
		if front.reads.Load() > 1 {
			b.whyTwice(ctx, servers)
		}
		most, ratios = max(most, front.reads.Load()), append(ratios, p99/1000/took.Seconds())
	}
	b.report.target("requests to the tracker, at worst", float64(most), 1)
	b.report.target("p99 by the tracker's time, median of the rounds", spreadOf(ratios).middle, 1.15)
	return nil
}

// allGood tells of an answer that is not 200.
func allGood(answers []seen) error {
	for _, each := range answers {
		if each.status != http.StatusOK {
			return fmt.Errorf("an answer was %d, %s", each.status, each.cache)
		}
	}
	return nil
}

// whyTwice tells what is needed to understand a second request: a process whose calls of Redis fail asks the tracker itself.
func (b *bench) whyTwice(ctx context.Context, servers []*server) {
	for _, each := range servers {
		figures, err := metrics(ctx, each.admin)
		if err != nil {
			b.report.say("%s: %v", each.name, err)
			continue
		}
		for name, figure := range figures {
			if strings.HasPrefix(name, "portico_redis_seconds_count") && !strings.Contains(name, `result="ok"`) {
				b.report.say("%s: %s %g", each.name, name, figure)
			}
		}
	}
}
