package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	waiters     = 1000
	waitersTime = 2 * time.Second
	// waitersPath is something that is never cached, so that everybody waits for a call of his own.
	waitersPath = "/rest/bug/1/attachment"
	// waitersMemory is how much each of them may take, in kB.
	waitersMemory = 40
)

// waiting has a thousand clients wait for a slow tracker: all of them with a call under way, and most of them in the queue.
func waiting(ctx context.Context, b *bench) error {
	front, stop, err := b.gatedTracker(ctx)
	if err != nil {
		return err
	}
	defer stop()
	front.slow = waitersTime
	for _, calls := range []int{waiters, 64} {
		if err := b.waitingFor(ctx, front, calls); err != nil {
			return err
		}
	}
	return nil
}

// waitingFor measures with so many calls of the tracker at once.
func (b *bench) waitingFor(ctx context.Context, front *gate, calls int) error {
	b.report.title(fmt.Sprintf("%d clients wait for a tracker that takes %v, %d calls at once", waiters, waitersTime, calls))
	var memory, heap, ratios []float64
	for range b.rounds {
		portico, err := b.facade(ctx, facade{
			name: "portico", tracker: "http://" + front.address + "/", redis: "embedded", level: "warn",
			more: []string{"limits:", "  concurrency: " + strconv.Itoa(calls), "  queue: " + strconv.Itoa(waiters), "  queue_wait: 1h"},
		})
		if err != nil {
			return err
		}
		seen, err := b.waitingRound(ctx, portico)
		portico.stop()
		if err != nil {
			return err
		}
		memory, heap, ratios = append(memory, seen.memory), append(heap, seen.heap), append(ratios, seen.after/seen.before)
		b.report.say("memory for each client %5.1f kB, of it heap and stacks in use %5.1f kB; p99 of hot reads alone %6.2f ms, beside them %6.2f ms",
			seen.memory, seen.heap, seen.before, seen.after)
	}
	b.report.target("kB of memory for each client, median of the rounds", spreadOf(memory).middle, waitersMemory)
	b.report.target("kB of heap and stacks in use for each client, median of the rounds", spreadOf(heap).middle, waitersMemory)
	b.report.target("p99 of hot reads beside them by alone, median of the rounds", spreadOf(ratios).middle, 1.5)
	return nil
}

// waited is what one round showed: memory for each client in kB, p99 in ms.
type waited struct{ memory, heap, before, after float64 }

func (b *bench) waitingRound(ctx context.Context, portico *server) (w waited, err error) {
	if err := warm(ctx, portico.url(hotPath)); err != nil {
		return w, err
	}
	if w.before, err = b.hotReads(ctx, portico); err != nil {
		return w, err
	}
	before, err := portico.footprint(ctx)
	if err != nil {
		return w, err
	}
	crowdCtx, goHome := context.WithCancel(ctx)
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer goHome()
	failed := make(chan error, waiters)
	for n := range waiters {
		crowd.Go(func() { failed <- waitAgain(crowdCtx, portico.url(waitersPath), time.Duration(n)*waitersTime/waiters) })
	}
	time.Sleep(2 * waitersTime)
	after, err := portico.footprint(ctx)
	if err != nil {
		return w, err
	}
	w.memory, w.heap = (after.memory-before.memory)/waiters, (after.heap-before.heap)/waiters
	if w.after, err = b.hotReads(ctx, portico); err != nil {
		return w, err
	}
	goHome()
	crowd.Wait()
	for range waiters {
		err = errors.Join(err, <-failed)
	}
	return w, err
}

// hotReads gives the p99 of cached reads in ms.
func (b *bench) hotReads(ctx context.Context, portico *server) (float64, error) {
	took, err := pacedTurns(ctx, portico.url(hotPath), b.length/shadowTurns, 2*shadowTurns)
	if err != nil {
		return 0, fmt.Errorf("hot reads: %w", err)
	}
	return quantile(took, .99), nil
}

// waitAgain asks for something slow again and again until it is told to go.
func waitAgain(ctx context.Context, address string, first time.Duration) error {
	time.Sleep(first)
	line, err := openLine(context.WithoutCancel(ctx), address)
	if err != nil {
		return err
	}
	defer line.close()
	defer context.AfterFunc(ctx, line.close)()
	for ctx.Err() == nil {
		answer, err := line.get(address, key)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case answer.status != http.StatusOK:
			return fmt.Errorf("a client that waited got %d", answer.status)
		}
	}
	return nil
}

// footprint is the memory of a Portico in kB: what the system counts, and what the program uses of it.
type footprint struct{ memory, heap, goroutines float64 }

func (s *server) footprint(ctx context.Context) (footprint, error) {
	memory, err := s.memory("VmRSS")
	if err != nil {
		return footprint{}, err
	}
	figures, err := metrics(ctx, s.admin)
	return footprint{
		memory:     float64(memory) / 1000,
		heap:       (figures["go_memstats_heap_inuse_bytes"] + figures["go_memstats_stack_inuse_bytes"]) / 1000,
		goroutines: figures["go_goroutines"],
	}, err
}

// metrics reads the figures without labels that a Portico shows its operators.
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
