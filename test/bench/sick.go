package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	sickClients = 16
	sickReads   = 250
	sickTTL     = time.Second
)

// sick reads an expired entry while the tracker is sick in three ways.
func sick(ctx context.Context, b *bench) error {
	front, stop, err := b.gatedTracker(ctx)
	if err != nil {
		return err
	}
	defer stop()
	portico, err := b.facade(ctx, facade{
		name: "portico", tracker: "http://" + front.address + "/", redis: "embedded", level: "info",
		cache: []string{"ttl: " + sickTTL.String(), "stale_while_revalidate: 0s", "stale_if_error: 1h"},
	})
	if err != nil {
		return err
	}
	defer portico.stop()
	b.report.title(fmt.Sprintf("an expired entry and a sick tracker, %d clients with %d reads each", sickClients, sickReads))
	for _, failure := range []string{refuses, hangs, fails} {
		var ratios []float64
		for range b.rounds {
			ratio, err := b.sickRound(ctx, front, portico, failure)
			if err != nil {
				return fmt.Errorf("%s: %w", failure, err)
			}
			ratios = append(ratios, ratio)
		}
		b.report.target("p99 stale by p99 fresh, median of the rounds, tracker "+failure, spreadOf(ratios).middle, 2)
	}
	return nil
}

// sickRound compares reads of a fresh entry with reads of the same, expired. All of the latter must say what they are.
func (b *bench) sickRound(ctx context.Context, front *gate, portico *server, failure string) (ratio float64, err error) {
	address := func(int) string { return portico.url(hotPath) }
	readers := crowd{
		clients: sickClients, times: sickReads, key: key, address: address,
		prelude: func(int) string { return portico.url(noPath) },
	}
	if err := front.be(ctx, well); err != nil {
		return 0, err
	}
	// The breaker towards the tracker may still be open from the round before.
	time.Sleep(3 * time.Second)
	if err := warm(ctx, portico.url(hotPath)); err != nil {
		return 0, err
	}
	fresh, err := readers.read(ctx)
	if err != nil {
		return 0, err
	}
	if err := allGood(fresh); err != nil {
		return 0, err
	}
	if err := front.be(ctx, failure); err != nil {
		return 0, err
	}
	time.Sleep(2 * sickTTL)
	stale, err := readers.read(ctx)
	if err != nil {
		return 0, err
	}
	if err := allGood(stale); err != nil {
		return 0, err
	}
	told := 0
	for _, each := range stale {
		if strings.Contains(each.cache, "stale-if-error") {
			told++
		}
	}
	before, after := percentile(milliseconds(fresh), .99), percentile(milliseconds(stale), .99)
	b.report.say("tracker %s: all %d answers 200 and stale-if-error, p99 fresh %.2f ms, stale %.2f ms, slowest stale %.1f ms",
		failure, len(stale), before, after, percentile(milliseconds(stale), 1))
	if told < len(stale) {
		return 0, fmt.Errorf("%d answers do not say that they are stale", len(stale)-told)
	}
	return after / before, nil
}
