package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	waiters     = 1000
	waitersTime = 2 * time.Second
	// waitersTurns is how many responses each client gets from a server that refuses nothing.
	waitersTurns = 3
	// besides is how many connections read from the cache meanwhile.
	besides = 8
)

// waiting has a thousand clients wait for uncached reads of a slow tracker, through each server with its default limits, and reads from the cache beside them.
func waiting(ctx context.Context, b *bench) error {
	tracker, stop, err := b.cannedTracker(ctx, ordinaryPath, waitersTime)
	if err != nil {
		return err
	}
	defer stop()
	b.report.title(fmt.Sprintf("waiting: %d clients of a tracker that takes %v, no access log", waiters, waitersTime))
	var t table
	for range b.rounds {
		servers, end, err := b.peers(ctx, tracker.url("/"), false)
		if err != nil {
			return err
		}
		for _, each := range servers {
			if err == nil {
				err = b.waitingTurn(ctx, &t, each)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", each.name, err)
			}
		}
		end()
		if err != nil {
			return err
		}
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: "responses other than 200", bound: 0},
		goal{row: "hot reads: rate by alone", bound: .8, minimum: true}, goal{row: "hot reads: p99 ms", bound: 5},
		goal{row: "kB of memory per client", bound: 40})
	return nil
}

// waitingTurn measures one server. Memory is the resident memory in the middle of the load by that before it. The plain proxy has no cache, so its hot
// reads go to the tracker.
func (b *bench) waitingTurn(ctx context.Context, t *table, through *server) error {
	hot := through.url(hotPath)
	alone, err := b.load(ctx, besides, b.length, hot)
	if err != nil {
		return err
	}
	before, err := through.memory("VmRSS")
	if err != nil {
		return err
	}
	end := time.Now().Add(waitersTurns * waitersTime)
	var statuses []int
	crowd := make(chan error, 1)
	go func() {
		var err error
		statuses, err = together(waiters, func(int) ([]int, error) { return waitUntil(ctx, through.url(ordinaryPath), end) })
		crowd <- err
	}()
	time.Sleep(waitersTime / 2)
	beside, err := b.load(ctx, besides, min(b.length, waitersTime), hot)
	if err != nil {
		return err
	}
	after, err := through.memory("VmRSS")
	if err != nil {
		return err
	}
	if err := <-crowd; err != nil {
		return err
	}
	good := 0
	for _, status := range statuses {
		if status == http.StatusOK {
			good++
		}
	}
	t.add("responses 200", through.name, float64(good))
	t.add("responses other than 200", through.name, float64(len(statuses)-good))
	t.add("hot reads: rate by alone", through.name, beside.rate/alone.rate)
	t.add("hot reads: p99 ms", through.name, beside.p99.Seconds()*1000)
	t.add("kB of memory per client", through.name, float64(after-before)/1000/waiters)
	return nil
}

// waitUntil reads again and again and returns the statuses. No read begins in the last half of the tracker's time before the end, so that
// the number of reads does not depend on small delays. A connection that breaks counts as status 0.
func waitUntil(ctx context.Context, address string, end time.Time) (statuses []int, err error) {
	line, err := openLine(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { line.close() }()
	for time.Until(end) > waitersTime/2 {
		response, err := line.get(address, key)
		statuses = append(statuses, response.status)
		if err == nil {
			continue
		}
		line.close()
		if line, err = openLine(ctx, address); err != nil {
			return statuses, err
		}
	}
	return statuses, nil
}

// metrics reads the figures without labels of a Portico.
func metrics(ctx context.Context, admin string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	defer response.Body.Close()
	figures := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(response.Body, 4<<20))
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if figure, err := strconv.ParseFloat(text, 64); err == nil {
			figures[name] = figure
		}
	}
	return figures, lines.Err()
}
