package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	sickTTL   = time.Second
	freshName = "fresh"
)

// sick reads an expired entry while the tracker is sick in three ways.
func sick(ctx context.Context, b *bench) error {
	front, err := b.faultyTracker(ctx, candidateWell)
	if err != nil {
		return err
	}
	defer front.close()
	portico, err := b.facade(ctx, facade{
		name: porticoName, tracker: "http://" + front.address + "/", redis: "embedded", level: "info",
		cache: []string{"ttl: " + sickTTL.String(), "stale_while_revalidate: 0s", "stale_if_error: 1h"},
	})
	if err != nil {
		return err
	}
	defer portico.stop()
	b.report.title("sick: 16 clients read an expired entry 250 times each, and the same when it was fresh")
	var t table
	for _, failure := range []string{candidateDead, candidateHung, candidateFails} {
		row := "p99 ms, tracker " + failure
		for range b.rounds {
			if err := sickRound(ctx, &t, row, front, portico, failure); err != nil {
				return fmt.Errorf("%s: %w", failure, err)
			}
		}
		t.check(&b.report, goal{row: row, by: freshName, bound: 2})
	}
	t.print(&b.report)
	return nil
}

// sickRound compares reads of a fresh entry with reads of the same, expired. All of the latter must say what they are.
func sickRound(ctx context.Context, t *table, row string, front *faulty, portico *server, failure string) error {
	address := func(int) string { return portico.url(hotPath) }
	readers := crowd{clients: 16, times: 250, key: key, address: address, prelude: func(int) string { return portico.url(noPath) }}
	for _, state := range []struct{ name, tracker, says string }{{freshName, candidateWell, ""}, {porticoName, failure, "stale-if-error"}} {
		if err := front.be(ctx, state.tracker); err != nil {
			return err
		}
		time.Sleep(3 * sickTTL) // the breaker may be open from the round before; then the entry expires
		if state.name == freshName {
			if err := warm(ctx, portico.url(hotPath)); err != nil {
				return err
			}
		}
		responses, err := readers.read(ctx)
		if err == nil {
			err = allGood(responses)
		}
		if err != nil {
			return err
		}
		for _, each := range responses {
			if !strings.Contains(each.cache, state.says) {
				return fmt.Errorf("%s: a response says %q", state.name, each.cache)
			}
		}
		t.add(row, state.name, percentile(milliseconds(responses), .99))
	}
	return nil
}
