package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// listPath has the attachments of a bug, which are never cached.
const listPath = "/rest/bug/1/attachment"

// workerTime is how long the tracker takes for each request.
const workerTime = 200 * time.Millisecond

// workerLoad is what clients do to a server. Each request has a connection of its own, as those of scripts have.
type workerLoad struct {
	name string
	run  func(ctx context.Context, at string, length time.Duration) ([]seen, error)
}

// workers compares the tracker behind an Apache with few workers, asked straight and through Portico with its default settings.
func workers(ctx context.Context, b *bench) error {
	tracker, err := b.tracker(ctx, "--fault", "kind=slow,delay="+workerTime.String())
	if err != nil {
		return err
	}
	defer tracker.stop()
	few := []workerLoad{
		{"burst of 20 reads", burst(20)}, {"burst of 60 reads", burst(60)}, {"burst of 200 reads", burst(200)},
		{"30 clients steadily", mixed(30, 0)}, {"PUT beside 14 readers", writeBesideReaders},
	}
	for _, set := range []workerServer{{10, true}, {10, false}, {4, true}} {
		err := b.compareWorkers(ctx, tracker, set, few, []goal{
			{row: "median ms", by: straightName, bound: 1.25}, {row: "p99 ms", by: straightName, bound: 1.25},
			{row: "maximum ms", by: straightName, bound: 1.5}, {row: "refused", bound: 0},
		})
		if err != nil {
			return err
		}
	}
	return b.compareWorkers(ctx, tracker, workerServer{256, true}, []workerLoad{{"40 readers and 4 writers", mixed(40, 4)}},
		[]goal{{row: "responses per second", by: straightName, bound: 1 / 1.1, minimum: true}})
}

// workerPair gives two Apaches that are set up alike, the second one with a Portico in front of it, so that connections that Portico
// keeps do not delay clients that go straight.
func (b *bench) workerPair(ctx context.Context, tracker *server, set workerServer) (straight, through string, stop func(), err error) {
	var started []*server
	stop = func() {
		for _, each := range started {
			each.stop()
		}
	}
	for range 2 {
		apache, err := b.apache(ctx, tracker.url("/"), set)
		if err != nil {
			stop()
			return "", "", nil, err
		}
		started = append([]*server{apache}, started...)
	}
	portico, err := b.facade(ctx, facade{name: "portico", tracker: started[0].url("/"), redis: "embedded", level: "warn"})
	if err != nil {
		stop()
		return "", "", nil, err
	}
	straight, started = started[1].url(""), append([]*server{portico}, started...)
	for _, at := range []string{straight, portico.url("")} { // Portico asks for the version first
		if _, err := askOnce(ctx, at, readOf(0)); err != nil {
			stop()
			return "", "", nil, err
		}
	}
	return straight, portico.url(""), stop, nil
}

// straightName is the Apache without a Portico.
const straightName = "straight"

// compareWorkers loads both Apaches with each load, in turn.
func (b *bench) compareWorkers(ctx context.Context, tracker *server, set workerServer, loads []workerLoad, goals []goal) error {
	b.report.title(fmt.Sprintf("workers: %v for a tracker that takes %v, straight and through Portico", set, workerTime))
	straight, through, stop, err := b.workerPair(ctx, tracker, set)
	if err != nil {
		return err
	}
	defer stop()
	for _, load := range loads {
		var t table
		for range b.rounds {
			for _, each := range [][2]string{{straightName, straight}, {porticoName, through}} {
				name, at := each[0], each[1]
				begun := time.Now()
				all, err := load.run(ctx, at, b.length)
				if err != nil {
					return fmt.Errorf("%s: %w", load.name, err)
				}
				refused, times := 0, milliseconds(all)
				for _, each := range all {
					if each.status != http.StatusOK {
						refused++
					}
				}
				t.add("median ms", name, percentile(times, .5))
				t.add("p99 ms", name, percentile(times, .99))
				t.add("maximum ms", name, percentile(times, 1))
				t.add("refused", name, float64(refused))
				t.add("responses per second", name, float64(len(all))/time.Since(begun).Seconds())
			}
		}
		b.report.say("%s:", load.name)
		t.print(&b.report)
		t.check(&b.report, goals...)
	}
	return nil
}

// burst sends so many reads at once.
func burst(clients int) func(context.Context, string, time.Duration) ([]seen, error) {
	return func(ctx context.Context, at string, _ time.Duration) ([]seen, error) {
		return together(clients, func(n int) ([]seen, error) {
			one, err := askOnce(ctx, at, readOf(n))
			return []seen{one}, err
		})
	}
}

// mixed has so many clients that each send a request, wait for the response and send the next one.
func mixed(readers, writers int) func(context.Context, string, time.Duration) ([]seen, error) {
	return func(ctx context.Context, at string, length time.Duration) ([]seen, error) {
		end := time.Now().Add(length)
		return together(readers+writers, func(n int) ([]seen, error) {
			if n >= readers {
				return askUntil(ctx, at, end, func(i int) [3]string { return writeOf(n*1000 + i) })
			}
			return askUntil(ctx, at, end, readOf)
		})
	}
}

// writeBesideReaders gives the writes alone.
func writeBesideReaders(ctx context.Context, at string, length time.Duration) ([]seen, error) {
	var writes []seen
	end := time.Now().Add(length)
	_, err := together(15, func(n int) ([]seen, error) {
		if n > 0 {
			return askUntil(ctx, at, end, readOf)
		}
		var err error
		writes, err = askUntil(ctx, at, end, writeOf)
		return nil, err
	})
	return writes, err
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

func askUntil(ctx context.Context, at string, end time.Time, request func(i int) [3]string) (all []seen, err error) {
	for i := 0; time.Now().Before(end) && err == nil; i++ {
		var one seen
		one, err = askOnce(ctx, at, request(i))
		all = append(all, one)
	}
	return all, err
}

// readOf is an operation that is never cached, or a path that passes through.
func readOf(n int) [3]string {
	path := listPath
	if n%2 == 1 {
		path = "/rest/bug/1/comment"
	}
	return [3]string{http.MethodGet, withKey(path, key), ""}
}

func writeOf(n int) [3]string {
	return [3]string{http.MethodPut, withKey("/rest/flag_type/1", editorKey), fmt.Sprintf(`{"description":"number %d"}`, n)}
}

// askOnce sends a request on a connection of its own.
func askOnce(ctx context.Context, at string, request [3]string) (seen, error) {
	r, err := http.NewRequestWithContext(ctx, request[0], at+request[1], strings.NewReader(request[2]))
	if err != nil {
		return seen{}, err
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	begun := time.Now()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return seen{}, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return seen{status: response.StatusCode, took: time.Since(begun)}, err
}
