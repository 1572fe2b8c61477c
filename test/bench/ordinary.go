package main

import (
	"context"
	"slices"
)

// ordinaryPath is a read that is never cached, of an attachment of 13 bytes.
const ordinaryPath = "/rest/bug/attachment/1"

// addedRow is what a server adds to the latency that one client sees straight at the tracker.
const addedRow = "c1 added p50 microseconds"

// ordinary measures uncached small reads. One client reads straight from the tracker, too.
func ordinary(ctx context.Context, b *bench) error {
	tracker, servers, stop, err := b.before(ctx)
	if err != nil {
		return err
	}
	defer stop()
	b.report.title("ordinary: uncached small reads, no access log")
	var t table
	for _, connections := range []int{1, 16, 128} {
		for range b.rounds * turns {
			for _, each := range slices.Concat([]*server{tracker}, servers) {
				if _, err := b.loadTurn(ctx, &t, each, connections, ordinaryPath); err != nil {
					return err
				}
			}
		}
	}
	straight, _ := t.median(p50Row, tracker.name)
	for _, each := range servers {
		through, _ := t.median(p50Row, each.name)
		t.add(addedRow, each.name, through-straight)
	}
	t.print(&b.report)
	t.check(&b.report, goal{row: cpuRow(16), by: goproxyName, bound: 1.25}, goal{row: cpuRow(128), by: goproxyName, bound: 1.25},
		goal{row: addedRow, by: goproxyName, bound: 1.1})
	return nil
}
