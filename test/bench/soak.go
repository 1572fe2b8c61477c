package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// soakSample is how often a long run looks at the program.
const soakSample = 10 * time.Second

// soak loads one Portico with everything at once for a long time, and looks whether it grows.
func soak(ctx context.Context, b *bench) error {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return err
	}
	redis, err := b.redis(ctx)
	if err != nil {
		tracker.stop()
		return err
	}
	defer redis.stop()
	portico, err := b.facade(ctx, facade{
		name: "portico", tracker: tracker.url("/"), redis: "redis://" + redis.address + "/0", level: "warn",
		more: []string{"timeouts:", "  drain: 5s"},
	})
	if err != nil {
		tracker.stop()
		return err
	}
	defer portico.stop()
	b.report.title(fmt.Sprintf("%v of mixed load, a sample every %v", b.soak, soakSample))
	ending, end := context.WithTimeout(ctx, b.soak)
	defer end()
	load := mixture{address: portico.address, seen: map[string]map[string]int{}}
	var work sync.WaitGroup
	load.run(ending, &work)
	// The tracker is changed by this goroutine alone, and stopped by it in the end.
	var lost error
	work.Go(func() { lost = b.restarts(ending, tracker) })
	samples, err := b.watch(ending, portico)
	end()
	work.Wait()
	if err := errors.Join(err, lost); err != nil {
		return err
	}
	load.table(&b.report)
	b.verdict(samples)
	return nil
}

// restarts takes the tracker away for a moment, about twenty times in all but not more than once in half a minute.
func (b *bench) restarts(ctx context.Context, tracker *server) error {
	defer func() { tracker.stop() }()
	for every := max(b.soak/20, 30*time.Second); sleep(ctx, every); {
		tracker.stop()
		if !sleep(ctx, 2*time.Second) {
			return nil
		}
		again, err := start(ctx, b.dir, b.portico, tracker.address, "tracker", "--listen", tracker.address, "--seed", "fixture")
		if err != nil {
			return fmt.Errorf("start the tracker again: %w", err)
		}
		tracker.process = again
	}
	return nil
}

// sleep tells whether the time passed before the end.
func sleep(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sample is what the program took at one time, in the order of soakFigures.
type sample [4]float64

// soakFigures are what must not grow, with what counts as noise: so much over the whole run, or a twentieth of the mean
// if that is more.
var soakFigures = [4]struct {
	name  string
	noise float64
}{
	{"resident memory, kB", 4000}, {"live heap, kB", 1000}, {"goroutines", 5}, {"open files", 5},
}

// watch takes samples until the end.
func (b *bench) watch(ctx context.Context, portico *server) (samples []sample, err error) {
	for sleep(ctx, soakSample) {
		seen, err := portico.look(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		samples = append(samples, seen)
	}
	return samples, nil
}

// verdict compares the last third of the samples with the one before. The first third is the warming up.
func (b *bench) verdict(samples []sample) {
	third := len(samples) / 3
	for i, each := range soakFigures {
		var early, late float64
		for n := range third {
			early += samples[third+n][i] / float64(third)
			late += samples[2*third+n][i] / float64(third)
		}
		b.report.target(fmt.Sprintf("%s: mean %.0f, then %.0f; growth", each.name, early, late), late-early, max(each.noise, early/20))
	}
	b.report.hold(fmt.Sprintf("%d samples are enough", len(samples)), third > 2)
}

// look takes one sample. What the collector expects the heap to grow to before its next run is what was alive after its
// last one and a share of that, and does not go up and down with it.
func (s *server) look(ctx context.Context) (sample, error) {
	memory, err := s.memory("VmRSS")
	if err != nil {
		return sample{}, err
	}
	figures, err := metrics(ctx, s.admin)
	if err != nil {
		return sample{}, err
	}
	for _, name := range []string{"go_memstats_next_gc_bytes", "go_gc_gogc_percent", "go_goroutines", "process_open_fds"} {
		if figures[name] == 0 {
			return sample{}, fmt.Errorf("the metrics do not tell %s", name)
		}
	}
	live := figures["go_memstats_next_gc_bytes"] / (1 + figures["go_gc_gogc_percent"]/100)
	return sample{float64(memory) / 1000, live / 1000, figures["go_goroutines"], figures["process_open_fds"]}, nil
}
