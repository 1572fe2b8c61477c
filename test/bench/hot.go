package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const hotPath = "/rest/flag_type/TestProduct"

// hot measures the CPU time of one hot flag type read.
func hot(ctx context.Context, b *bench) error {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return err
	}
	defer tracker.stop()
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

// hotPeers measures with a log line per request, or without.
func (b *bench) hotPeers(ctx context.Context, tracker string, redis *server, log bool) error {
	level, what := "warn", "no access log"
	if log {
		level, what = "info", "one access log line per request, in a file on the same disk"
	}
	peer, err := b.nginx(ctx, "nginx "+level, tracker, log)
	if err != nil {
		return err
	}
	defer peer.stop()
	embedded, err := b.facade(ctx, facade{name: "portico, embedded redis", tracker: tracker, redis: "embedded", level: level})
	if err != nil {
		return err
	}
	defer embedded.stop()
	real, err := b.facade(ctx, facade{name: "portico, redis-server", tracker: tracker, redis: "redis://" + redis.address + "/0", level: level})
	if err != nil {
		return err
	}
	defer real.stop()
	for _, connections := range []int{16, 128} {
		b.report.title(fmt.Sprintf("CPU per hot read, %d connections, %s", connections, what))
		if err := b.hotRounds(ctx, connections, redis, []*server{peer, embedded, real}); err != nil {
			return err
		}
	}
	return nil
}

// hotRounds loads the servers in short turns, so that a machine that changes meanwhile changes for all, and compares them with the
// first one.
func (b *bench) hotRounds(ctx context.Context, connections int, redis *server, servers []*server) error {
	cost := make([][]float64, len(servers))
	var calls, reads int
	length := max(b.length/turns, time.Second)
	for range b.rounds * turns {
		for i, each := range servers {
			before, err := commands(ctx, redis)
			if err != nil {
				return err
			}
			figure, count, err := hotTurn(ctx, connections, length, each)
			if err != nil {
				return err
			}
			cost[i] = append(cost[i], figure)
			if i == len(servers)-1 {
				after, err := commands(ctx, redis)
				if err != nil {
					return err
				}
				calls, reads = calls+after-before-1, reads+count
			}
		}
	}
	b.report.say("%-28s %8s %8s %8s  microseconds of CPU per read: least, median, most of %d turns of %s", "",
		"least", "median", "most", b.rounds*turns, length)
	for i, each := range servers {
		b.report.say("%-28s %s", each.name, spreadOf(cost[i]))
	}
	for i, each := range servers[1:] {
		b.report.target("times the CPU of nginx: "+each.name, spreadOf(cost[i+1]).middle/spreadOf(cost[0]).middle, 1.4)
	}
	b.report.target(fmt.Sprintf("calls of redis-server per read (%d in %d reads)", calls, reads), float64(calls)/float64(reads), 0.01)
	return nil
}

// hotTurn loads one server and gives the microseconds of CPU per read.
func hotTurn(ctx context.Context, connections int, length time.Duration, of *server) (cost float64, count int, err error) {
	address := of.url(hotPath)
	if err := warm(ctx, address); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", of.name, err)
	}
	before, err := of.cpu()
	if err != nil {
		return 0, 0, err
	}
	count, err = wrk(ctx, connections, length, withKey(address, key))
	if err != nil {
		return 0, 0, err
	}
	after, err := of.cpu()
	return float64((after-before)/time.Microsecond) / float64(count), count, err
}

// warm reads until the answer is from the cache.
func warm(ctx context.Context, address string) error {
	from := client(1)
	defer from.CloseIdleConnections()
	for range 20 {
		answer, err := get(ctx, from, address, key)
		if err != nil {
			return err
		}
		if strings.Contains(strings.ToLower(answer.cache), "hit") {
			return nil
		}
	}
	return fmt.Errorf("%s is never answered from the cache", address)
}
