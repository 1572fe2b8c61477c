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

// sent is one request of a client and what became of it.
type sent struct {
	status int
	took   time.Duration
}

// workerLoad is what clients do to a server. Each request has a connection of its own, as those of scripts have.
type workerLoad struct {
	name string
	run  func(ctx context.Context, at string, length time.Duration) ([]sent, error)
}

func workerLoads() []workerLoad {
	return []workerLoad{
		{"burst of 20 reads", burst(20)}, {"burst of 60 reads", burst(60)}, {"burst of 200 reads", burst(200)},
		{"30 clients steadily", steady(30)}, {"PUT beside 14 readers", writeBesideReaders},
	}
}

// workers compares the tracker behind an Apache with few workers, asked straight and through Portico with its default settings.
func workers(ctx context.Context, b *bench) error {
	tracker, err := b.tracker(ctx, "--fault", "kind=slow,delay="+workerTime.String())
	if err != nil {
		return err
	}
	defer tracker.stop()
	for _, set := range []workerServer{{10, true}, {10, false}, {4, true}} {
		if err := b.fewWorkers(ctx, tracker, set); err != nil {
			return err
		}
	}
	return b.manyWorkers(ctx, tracker, workerServer{256, true})
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

func (b *bench) fewWorkers(ctx context.Context, tracker *server, set workerServer) error {
	b.report.title(fmt.Sprintf("%v for a tracker that takes %v: straight and through Portico", set, workerTime))
	straight, through, stop, err := b.workerPair(ctx, tracker, set)
	if err != nil {
		return err
	}
	defer stop()
	for _, load := range workerLoads() {
		var a, p []sent
		for range b.rounds {
			for _, each := range []struct {
				at  string
				all *[]sent
			}{{straight, &a}, {through, &p}} {
				seen, err := load.run(ctx, each.at, b.length)
				if err != nil {
					return fmt.Errorf("%s: %w", load.name, err)
				}
				*each.all = append(*each.all, seen...)
			}
		}
		b.compareWorkers(load.name, a, p)
	}
	return nil
}

// compareWorkers holds the times of all rounds against each other.
func (b *bench) compareWorkers(name string, straight, through []sent) {
	refused := [2]int{}
	var times [2][]float64
	for i, all := range [][]sent{straight, through} {
		for _, each := range all {
			times[i] = append(times[i], each.took.Seconds()*1000)
			if each.status != http.StatusOK {
				refused[i]++
			}
		}
	}
	b.report.say("%s: %d requests straight, %d refused; %d through Portico, %d refused",
		name, len(straight), refused[0], len(through), refused[1])
	for _, each := range []struct {
		what        string
		share, most float64
	}{{"median", .5, 1.25}, {"p99", .99, 1.25}, {"maximum", 1, 1.5}} {
		a, p := percentile(times[0], each.share), percentile(times[1], each.share)
		b.report.target(fmt.Sprintf("%s: %s straight %.0f ms, through %.0f ms", name, each.what, a, p), p/a, each.most)
	}
	b.report.hold(name+": no refusal where the tracker alone refuses nothing", refused[0] > 0 || refused[1] == 0)
}

// manyWorkers compares how many requests a server answers that has a worker for each.
func (b *bench) manyWorkers(ctx context.Context, tracker *server, set workerServer) error {
	b.report.title(fmt.Sprintf("%v for a tracker that takes %v: answers in a second", set, workerTime))
	straight, through, stop, err := b.workerPair(ctx, tracker, set)
	if err != nil {
		return err
	}
	defer stop()
	var ratios []float64
	for range b.rounds {
		var perSecond [2]float64
		for i, at := range []string{straight, through} {
			begun := time.Now()
			seen, err := mixed(40, 4)(ctx, at, b.length)
			if err != nil {
				return err
			}
			perSecond[i] = float64(len(seen)) / time.Since(begun).Seconds()
		}
		b.report.say("40 readers and 4 writers: %.0f straight, %.0f through Portico", perSecond[0], perSecond[1])
		ratios = append(ratios, perSecond[0]/perSecond[1])
	}
	b.report.target("answers straight by those through Portico, median of the rounds", spreadOf(ratios).middle, 1.1)
	return nil
}

// burst sends so many reads at once.
func burst(clients int) func(context.Context, string, time.Duration) ([]sent, error) {
	return func(ctx context.Context, at string, _ time.Duration) ([]sent, error) {
		return together(clients, func(n int) ([]sent, error) {
			one, err := askOnce(ctx, at, readOf(n))
			return []sent{one}, err
		})
	}
}

// steady has so many clients that each send a read, wait for the response and send the next one.
func steady(clients int) func(context.Context, string, time.Duration) ([]sent, error) {
	return mixed(clients, 0)
}

func mixed(readers, writers int) func(context.Context, string, time.Duration) ([]sent, error) {
	return func(ctx context.Context, at string, length time.Duration) ([]sent, error) {
		end := time.Now().Add(length)
		return together(readers+writers, func(n int) ([]sent, error) {
			if n >= readers {
				return askUntil(ctx, at, end, func(i int) [3]string { return writeOf(n*1000 + i) })
			}
			return askUntil(ctx, at, end, readOf)
		})
	}
}

// writeBesideReaders gives the writes alone.
func writeBesideReaders(ctx context.Context, at string, length time.Duration) ([]sent, error) {
	var writes []sent
	end := time.Now().Add(length)
	_, err := together(15, func(n int) ([]sent, error) {
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

func askUntil(ctx context.Context, at string, end time.Time, request func(i int) [3]string) (all []sent, err error) {
	for i := 0; time.Now().Before(end) && err == nil; i++ {
		var one sent
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
func askOnce(ctx context.Context, at string, request [3]string) (sent, error) {
	r, err := http.NewRequestWithContext(ctx, request[0], at+request[1], strings.NewReader(request[2]))
	if err != nil {
		return sent{}, err
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	begun := time.Now()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return sent{}, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return sent{response.StatusCode, time.Since(begun)}, err
}
