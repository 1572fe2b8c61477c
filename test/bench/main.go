package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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
	among   string
	dir     string
}

// experiment is one thing that is measured.
type experiment struct {
	name string
	run  func(context.Context, *bench) error
}

func experiments() []experiment {
	return []experiment{
		{"hot", hot}, {"ordinary", ordinary}, {"large", large}, {"cold", cold}, {"waiting", waiting}, {"refused", refused}, {"start", startUp},
		{"shadow", shadow}, {"journal", journal},
	}
}

// bench is one run.
type bench struct {
	settings
	report report
	load   func(ctx context.Context, connections int, length time.Duration, address string) (loaded, error)
}

func main() {
	if helper(os.Args) {
		return
	}
	var s settings
	flag.StringVar(&s.portico, "portico", "bin/portico", "the `PROGRAM` to measure")
	flag.IntVar(&s.rounds, "rounds", 3, "measure each server this often, in turn")
	flag.DurationVar(&s.length, "length", 4*time.Second, "load a server this long in each round")
	flag.DurationVar(&s.soak, "soak", 0, "load one Portico with everything for so long, and do nothing else")
	flag.StringVar(&s.only, "only", "", "do these experiments only, with commas between: "+names())
	flag.StringVar(&s.among, "peers", "", "measure these servers only, with commas between: nginx, haproxy, goproxy, portico")
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

func names() string {
	var all []string
	for _, each := range experiments() {
		all = append(all, each.name)
	}
	return strings.Join(all, ", ")
}

// run does the experiments and tells whether every target was met.
func run(ctx context.Context, s settings) (met bool, err error) {
	if s.portico, err = filepath.Abs(s.portico); err != nil {
		return false, fmt.Errorf("find the program: %w", err)
	}
	s.dir, err = os.MkdirTemp("", "portico-bench-*")
	if err != nil {
		return false, fmt.Errorf("make a folder for the servers: %w", err)
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	// The workers of nginx may run as another user.
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return false, fmt.Errorf("open the folder for the servers: %w", err)
	}
	b := &bench{settings: s, load: wrk}
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
