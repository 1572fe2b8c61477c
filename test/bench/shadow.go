package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

const (
	shadowClients = 8
	// shadowPause is how long each client waits between two reads: what is measured is the wait of clients, not how much
	// two programs that share the cores can do.
	shadowPause = 40 * time.Millisecond
	// shadowLives is how many processes of each set-up share the turns of a round.
	shadowLives = 2
	// offName and noiseName are Porticos that shadow nothing: what differs between them is noise.
	offName, noiseName = "off", "off too"
)

// shadow compares what clients wait while every read is shadowed to a candidate, sick in several ways, with what they wait while
// no read is.
func shadow(ctx context.Context, b *bench) error {
	failures := []string{candidateNone, candidateWell, candidateHung, candidateFlood, candidateReset, candidateDead}
	if b.failure != "" {
		failures = strings.Split(b.failure, ",")
	}
	for _, failure := range failures {
		if err := b.shadowed(ctx, failure); err != nil {
			return fmt.Errorf("candidate %s: %w", failure, err)
		}
	}
	return nil
}

// shadowed measures one candidate. A process keeps for its life how its memory happens to lie, so each set-up has several.
func (b *bench) shadowed(ctx context.Context, failure string) error {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return err
	}
	defer tracker.stop()
	candidate, err := b.faultyTracker(ctx, failure)
	if err != nil {
		return err
	}
	defer candidate.close()
	b.report.title(fmt.Sprintf("shadow: candidate %s, %d clients with a read each %v", failure, shadowClients, shadowPause))
	var t table
	for life := range shadowLives * b.rounds {
		if err := b.shadowLife(ctx, &t, tracker, candidate.address, failure, life); err != nil {
			return err
		}
	}
	t.print(&b.report)
	for _, what := range shadowPaths {
		t.check(&b.report, goal{row: what.name + " p50 ms", by: offName, bound: 1.05}, goal{row: what.name + " p99 ms", by: offName, bound: 1.1})
	}
	off, _ := t.median("peak MB", offName)
	t.check(&b.report, goal{row: "peak MB", bound: off + 64})
	return nil
}

// shadowPaths are what is read.
var shadowPaths = []struct{ name, path string }{{"attachments", "/rest/bug/10/attachment"}, {"flag types", hotPath}}

// shadowLife starts a process of each set-up and loads them in turns.
func (b *bench) shadowLife(ctx context.Context, t *table, tracker *server, candidate, failure string, life int) error {
	var servers []*server
	defer func() {
		for _, each := range servers {
			each.stop()
		}
	}()
	for _, name := range []string{offName, noiseName, porticoName} {
		sample := 0
		if name == porticoName && failure != candidateNone {
			sample = 1
		}
		state := filepath.Join(b.dir, fmt.Sprintf("shadow-%s-%s-%d.db", failure, strings.ReplaceAll(name, " ", "-"), life))
		one, err := b.facade(ctx, facade{
			name: name, tracker: tracker.url("/"), redis: "embedded", level: "warn",
			candidate: "http://" + candidate + "/", state: state, more: []string{fmt.Sprintf("canary: {sample: %d}", sample)},
		})
		if err != nil {
			return err
		}
		servers = append(servers, one)
	}
	if err := inTurns(t, life, servers, func(t *table, of *server) error { return b.shadowTurn(ctx, t, of) }); err != nil {
		return err
	}
	for _, each := range servers {
		most, err := each.memory("VmHWM")
		if err != nil {
			return err
		}
		t.add("peak MB", each.name, float64(most)/1e6)
	}
	return nil
}

// shadowTurn loads one server at a pace that the machine can take.
func (b *bench) shadowTurn(ctx context.Context, t *table, of *server) error {
	return of.perResponse(t, "CPU microseconds", func() (count int, err error) {
		for _, what := range shadowPaths {
			responses, err := together(shadowClients, func(int) ([]seen, error) { return pacedClient(ctx, of.url(what.path), b.length/turns/2) })
			if err == nil {
				err = allGood(responses)
			}
			if err != nil {
				return 0, fmt.Errorf("%s: %w", of.name, err)
			}
			count += len(responses)
			t.add(what.name+" p50 ms", of.name, percentile(milliseconds(responses), .5))
			t.add(what.name+" p99 ms", of.name, percentile(milliseconds(responses), .99))
		}
		return count, nil
	})
}

// pacedClient pauses for shadowPause on average, never twice for the same time: a beat would meet other beats.
func pacedClient(ctx context.Context, address string, length time.Duration) (responses []seen, err error) {
	line, err := openLine(ctx, address)
	if err != nil {
		return nil, err
	}
	defer line.close()
	pause := func() { time.Sleep(shadowPause/2 + rand.N(shadowPause)) }
	for end := time.Now().Add(length); time.Now().Before(end) && err == nil; {
		pause()
		var one seen
		one, err = line.get(address, key)
		responses = append(responses, one)
	}
	return responses, err
}
