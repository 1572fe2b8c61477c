package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are what one run is told.
type settings struct {
	portico string
	rounds  int
	length  time.Duration
	soak    time.Duration
	only    string
	failure string
	dir     string
}

// experiment is one thing that is measured.
type experiment struct {
	name string
	run  func(context.Context, *bench) error
}

func experiments() []experiment {
	return []experiment{{"hot", hot}, {"cold", cold}, {"sick", sick}, {"large", large}, {"shadow", shadow}, {"waiting", waiting}}
}

// bench is one run.
type bench struct {
	settings
	report report
}

func main() {
	var s settings
	flag.StringVar(&s.portico, "portico", "bin/portico", "the `PROGRAM` to measure")
	flag.IntVar(&s.rounds, "rounds", 5, "measure each peer this often, in turn")
	flag.DurationVar(&s.length, "length", 4*time.Second, "load a server this long in each round")
	flag.DurationVar(&s.soak, "soak", 0, "load one Portico with everything for so long, and do nothing else")
	flag.StringVar(&s.only, "only", "", "do these experiments only: hot, cold, sick, large, shadow, waiting, with commas between")
	flag.StringVar(&s.failure, "candidate", "", "in shadow, try these candidates only: none, well, hung, flooding, resetting, dead, with commas between")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	met, err := run(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// run does the experiments and tells whether every target was met.
func run(ctx context.Context, s settings) (met bool, err error) {
	s.dir, err = os.MkdirTemp("", "portico-bench-*")
	if err != nil {
		return false, fmt.Errorf("make a folder for the servers: %w", err)
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	// The workers of nginx may run as somebody else.
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return false, fmt.Errorf("open the folder for the servers: %w", err)
	}
	b := &bench{settings: s}
	b.report.machine(ctx)
	if s.soak > 0 {
		err := soak(ctx, b)
		return err == nil && b.report.met(), err
	}
	for _, each := range experiments() {
		if s.only != "" && !slices.Contains(strings.Split(s.only, ","), each.name) {
			continue
		}
		if err := each.run(ctx, b); err != nil {
			return false, fmt.Errorf("%s: %w", each.name, err)
		}
	}
	return b.report.met(), nil
}
