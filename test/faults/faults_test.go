package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

var (
	requests = flag.Int64("requests", 0, "the number of requests over all kinds of fault; 0 is the short run")
	seeded   = flag.Uint64("seed", 0, "the seed of the load; 0 takes one at random")
	only     = flag.String("kind", "", "only the kinds whose name contains this")
)

// shortRun is how long the short run begins new kinds, in an order that the seed decides. On a machine that has nothing
// else to do it gets through all of them.
const shortRun = 20 * time.Second

// result is a line of the table.
type result struct {
	kind string
	book *book
}

// TestFaults is the fault suite: every kind of fault under load, and no word to a client that is not true.
func TestFaults(t *testing.T) {
	seed := *seeded
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	all := kinds()
	each, rounds, parallel, budget := int64(50), 1, 8, shortRun
	if *requests > 0 {
		each, rounds, parallel = *requests/int64(len(all))*12/10+1, 10, 3
		budget = time.Hour
	}
	var mu sync.Mutex
	var results []result
	process.Portico(t)
	start := time.Now()
	gate := make(chan struct{}, parallel)
	t.Run("kinds", func(t *testing.T) {
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
			k := all[i]
			if !strings.Contains(k.name, *only) {
				continue
			}
			t.Run(strings.ReplaceAll(k.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				gate <- struct{}{}
				t.Cleanup(func() { <-gate })
				if time.Since(start) > budget {
					t.Skip("no time left: this kind is for another seed")
				}
				n := each
				if k.slow {
					n /= 3
				}
				b := openScene(t, k, seed+uint64(i)).try(n, rounds, seed+uint64(i))
				if len(b.wrong) > 0 {
					t.Errorf("%d violations:\n%s", len(b.wrong), b.summary())
				}
				mu.Lock()
				defer mu.Unlock()
				results = append(results, result{k.name, b})
			})
		}
	})
	t.Logf("\n%s%v, seed %d", table(all, results), time.Since(start).Round(time.Second), seed)
}

// table shows what became of all requests, in the order of the kinds.
func table(all []kind, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %9s %9s %8s %8s %7s %9s %10s\n", "kind of fault", "requests", "ok", "refused", "unknown", "lost", "slowest", "violations")
	var sum [6]int
	for _, k := range all {
		for _, r := range results {
			if r.kind != k.name {
				continue
			}
			c := r.book.count
			row := [6]int{c[ok] + c[refused] + c[unknown] + c[lost], c[ok], c[refused], c[unknown], c[lost], len(r.book.wrong)}
			for i, n := range row {
				sum[i] += n
			}
			fmt.Fprintf(&b, "%-34s %9d %9d %8d %8d %7d %9s %10d\n", k.name, row[0], row[1], row[2], row[3], row[4], r.book.slowest.Round(time.Millisecond), row[5])
		}
	}
	fmt.Fprintf(&b, "%-34s %9d %9d %8d %8d %7d %9s %10d\n", fmt.Sprintf("%d kinds", len(results)), sum[0], sum[1], sum[2], sum[3], sum[4], "", sum[5])
	return b.String()
}
