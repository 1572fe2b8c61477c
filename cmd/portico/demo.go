package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"portico/upstream/canary"
)

// demoCommand is portico demo.
func demoCommand() command {
	return command{
		name:      "demo",
		arguments: "[--listen ADDR] [--admin-listen ADDR] [--drive N [--stay]] [--same]",
		summary:   "run everything in one process, with made-up data",
		details: "Start a reference tracker with made-up data, a second one that differs from it in some ways,\n" +
			"an embedded Redis server and Portico in front of them, and print commands to try.\n\n" +
			"With --drive it asks N times itself, as clients do, prints what the comparison of the two trackers\n" +
			"has found, and ends. Its exit code is then the verdict: 0 PASS, 1 FAIL, 2 INCONCLUSIVE.",
		prepare: func(fs *flag.FlagSet) runner {
			d := demo{cfg: demoConfig()}
			fs.StringVar(&d.cfg.Listen, "listen", d.cfg.Listen, "listen for clients on `ADDR`")
			fs.StringVar(&d.cfg.Admin.Listen, "admin-listen", d.cfg.Admin.Listen, "listen for operators on `ADDR`")
			fs.IntVar(&d.requests, "drive", 0, "make `N` requests and end with the verdict")
			fs.BoolVar(&d.same, "same", false, "let the second tracker differ in nothing")
			fs.BoolVar(&d.stay, "stay", false, "go on serving after --drive until told to stop")
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if err := errors.Join(noArguments(args), d.check(env)); err != nil {
					return exitUsage, err
				}
				d.env = env
				return d.run(ctx)
			}
		},
	}
}

// The names of the demo's trackers.
const (
	demoPrimary   = "main"
	demoCandidate = "candidate"
)

// demoConfig compares every read, and more of them at a time than one would ask of
// trackers that others use. It leaves the writes out, of which it makes too few for a
// verdict.
func demoConfig() Config {
	cfg := Default()
	cfg.Log.Level = "warn"
	cfg.State = "sqlite::memory:"
	cfg.Primary, cfg.Candidate = demoPrimary, demoCandidate
	rule := RuleConfig{Name: "reads"}
	rule.SetDefaults()
	rule.Writes = "old"
	cfg.Switchover.Rules = []RuleConfig{rule}
	cfg.Canary.Workers, cfg.Canary.Queue, cfg.Canary.PerSecond = 32, 4096, 5000
	// Planted slowness is 200 ms; what a busy machine does to so many calls is less.
	cfg.Canary.Latency.Slack = 150 * time.Millisecond
	return cfg
}

// demo is one run of portico demo.
type demo struct {
	env        environment
	cfg        Config
	requests   int
	same, stay bool
}

// check finds what is wrong with the flags.
func (d *demo) check(env environment) error {
	switch {
	case d.requests < 0:
		return usageError{"--drive needs a number of requests"}
	case d.stay && d.requests == 0:
		return usageError{"--stay is for --drive"}
	}
	found := &problemList{}
	cfg := d.cfg
	cfg.Trackers = map[string]TrackerConfig{demoPrimary: demoTracker("http://127.0.0.1/"), demoCandidate: demoTracker("http://127.0.0.1/b/")}
	if validateServing(&cfg, found, env.variable); fatal(found.problems) {
		return usageError{found.problems[0].String()}
	}
	return nil
}

func demoTracker(base string) TrackerConfig {
	t := TrackerConfig{URL: base}
	t.SetDefaults()
	return t
}

// run starts the trackers beside serve.
func (d *demo) run(ctx context.Context) (code int, err error) {
	logger := newLogger(d.env.stderr, d.cfg.Log)
	behind, err := startDemoTrackers(d.same, d.cfg, logger)
	if err != nil {
		return exitFailed, err
	}
	d.cfg.Trackers = map[string]TrackerConfig{
		demoPrimary:   demoTracker(address(behind.primary) + "/"),
		demoCandidate: demoTracker(address(behind.candidate) + "/"),
	}
	code, err = d.serve(ctx, behind)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if failed := errors.Join(err, behind.close(closing)); failed != nil {
		return exitFailed, failed
	}
	return code, nil
}

// serve runs Portico, and drives it if that is asked for.
func (d *demo) serve(ctx context.Context, behind *demoTrackers) (int, error) {
	asked, forget := untilSignal(ctx) // here, too, or requests went on to be made after it
	defer forget()
	ctx, stop := context.WithCancel(asked)
	defer stop()
	verdict := make(chan demoOutcome, 1)
	host := facade{env: d.env, cfg: d.cfg}
	host.started = func(p *program) {
		if d.requests == 0 {
			printTour(d.env.stdout, behind, p)
			return
		}
		fmt.Fprintf(d.env.stdout, "Portico is at %s, its operators' side at %s.\n", address(p.listeners[0]), address(p.listeners[1]))
		p.background.Go(func() {
			verdict <- d.drive(ctx, host.scene, address(p.listeners[0]))
			if !d.stay {
				stop()
			}
		})
	}
	if err := host.serve(ctx); err != nil || d.requests == 0 {
		return exitOK, err
	}
	outcome := <-verdict
	if asked.Err() != nil && !d.stay {
		return exitFailed, errDemoEnded
	}
	return outcome.verdict.ExitCode(), outcome.err
}

// errDemoEnded says that there is no verdict, since somebody did not wait for it.
var errDemoEnded = errors.New("it was told to end before all was compared")

// demoOutcome is what came of --drive.
type demoOutcome struct {
	verdict canary.Verdict
	err     error
}
