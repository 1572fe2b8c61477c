package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/proxy/admin"
	"portico/test/demo"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/switchover"
)

// demoCommand is portico demo.
func demoCommand(env environment) *cobra.Command {
	d, listen, adminListen := demoRun{env: env}, "", ""
	c := command("demo", "run everything in one process, with made-up data", func(ctx context.Context, _ []string) error {
		d.cfg = demoConfig(listen, adminListen)
		return d.run(ctx)
	})
	c.Long = `Start a reference tracker with made-up data, a second one that differs from it in some ways,
an embedded Redis server and Portico in front of them, and print commands to try.

With --drive it makes N requests itself, as clients do, prints what the comparison of the two trackers
has found, and ends. Its exit code is 0 when that is exactly what the demo has planted, 1 when it is not,
and 2 when not everything could be compared. With --same it is the verdict: 0 PASS, 1 FAIL, 2 INCONCLUSIVE.`
	c.Flags().StringVar(&listen, "listen", defaultListen, "listen for clients on `ADDR`")
	c.Flags().StringVar(&adminListen, "admin-listen", defaultAdminListen, "listen for operators on `ADDR`")
	c.Flags().IntVar(&d.requests, "drive", 0, "make `N` requests, compare the result with what is planted, and end")
	c.Flags().BoolVar(&d.places.Same, "same", false, "let the second tracker differ in nothing")
	c.Flags().BoolVar(&d.stay, "stay", false, "go on serving after --drive until told to stop")
	return c
}

// demoConfig compares every read, and more of them at a time than would be good for trackers that others use. It leaves out the
// writes, of which the demo makes too few for a verdict.
func demoConfig(listen, adminListen string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen = listen, adminListen
	cfg.Log.Level = "warn"
	cfg.State = "sqlite::memory:"
	cfg.Primary, cfg.Candidate, cfg.Trackers = "main", "candidate", map[string]config.Tracker{}
	rule := config.Defaults[switchover.Rule]()
	rule.Name, rule.Writes = "reads", "old"
	cfg.Switchover.Rules = []switchover.Rule{rule}
	cfg.Canary.Workers, cfg.Canary.Queue, cfg.Canary.PerSecond = 32, 4096, 5000
	// Planted slowness is 200 ms; what a busy machine does to so many calls is less.
	cfg.Canary.Latency.Slack = 150 * time.Millisecond
	return cfg
}

// demoRun is one run of portico demo.
type demoRun struct {
	env      environment
	cfg      config.Config
	places   demo.Places
	requests int
	stay     bool
}

// run serves the two trackers, each on a free port, and Portico before them. The candidate gets the writes of the primary.
func (d *demoRun) run(ctx context.Context) (err error) {
	var ofPrimary, ofCandidate []tracker.Quirk
	if d.places.Same {
		d.cfg.Canary.Latency.Slack = 5 * time.Second // only what a busy machine does could make the times differ
	} else {
		ofPrimary = []tracker.Quirk{tracker.QuirkVolatile}
		for _, planted := range demo.Planted() {
			ofCandidate = append(ofCandidate, planted.Quirk)
		}
	}
	logger, _ := app.NewLogger(d.env.stderr, d.cfg.Log)
	first := tracker.New(tracker.Options{Seed: tracker.SeedDemo, Quirks: ofPrimary})
	second := tracker.New(tracker.Options{Follows: first, Quirks: ofCandidate})
	var trackers errgroup.Group
	behind, stop := context.WithCancel(context.WithoutCancel(ctx)) // for as long as Portico serves
	defer func() {
		stop()
		err = errors.Join(cmp.Or(trackers.Wait(), err), first.Close(), second.Close())
	}()
	for name, server := range map[string]*tracker.Server{d.cfg.Primary: first, d.cfg.Candidate: second} {
		listener, err := app.Listen(nil, "a reference tracker", "127.0.0.1:0", server, d.cfg, logger)
		if err != nil {
			return err
		}
		trackers.Go(func() error { return listener.RunUntil(behind, time.Second) })
		settings := config.Defaults[config.Tracker]()
		settings.URL = listener.URL()
		d.cfg.Trackers[name] = settings
	}
	d.places.Primary, d.places.Candidate = d.cfg.Trackers[d.cfg.Primary].URL, d.cfg.Trackers[d.cfg.Candidate].URL
	for _, problem := range d.cfg.Problems(d.env.variable) {
		if !problem.Warning {
			return usageError("%s", problem)
		}
	}
	return d.serve(ctx)
}

// serve runs Portico, and drives it if that is asked for.
func (d *demoRun) serve(ctx context.Context) error {
	signalled, forget := app.UntilSignal(ctx) // before Portico's own, since it also ends --drive
	defer forget()
	ctx, stop := context.WithCancel(signalled)
	defer stop()
	driven := make(chan error, 1)
	service := app.New(d.env.stderr, d.cfg)
	service.Pages = []admin.Page{d.places.Page()}
	service.Started = func(clients, operators *app.Listener, rt *app.Runtime) {
		d.places.Clients, d.places.Operators = clients.URL(), operators.URL()
		fmt.Fprintf(d.env.stdout, "%s\n", d.places.Introduction())
		if d.requests == 0 {
			fmt.Fprintf(d.env.stdout, "Try, in another terminal, or see %s/demo:\n\n%s\nStop it with Ctrl-C.\n", d.places.Operators, d.places.Tour())
			return
		}
		go func() {
			driven <- d.drive(ctx, rt.Canary)
			if !d.stay {
				stop()
			}
		}()
	}
	if err := service.Serve(ctx); err != nil || d.requests == 0 {
		return err
	}
	return <-driven
}

// drive makes requests, waits until they have been compared, prints the report and what it says of the planted differences. The error
// is the exit status.
func (d *demoRun) drive(ctx context.Context, compared *canary.Canary) error {
	driver, began := demo.NewDriver(d.places.Clients, compared), time.Now()
	shown := d.env.progress(func() string {
		return fmt.Sprintf("%d requests made, %d responses to compare", driver.Made(), compared.Load().Queued)
	})
	defer shown.stop()
	if err := driver.Run(ctx, d.requests); err != nil {
		return exitError{verdict.Inconclusive.ExitCode(), fmt.Errorf("drive the demo: %w", err)}
	}
	took := time.Since(began).Round(time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for compared.Load().Pending > 0 {
		if !upstream.Pause(ctx, 10*time.Millisecond) {
			return exitError{verdict.Inconclusive.ExitCode(), fmt.Errorf("wait for the comparisons: %w", ctx.Err())}
		}
	}
	shown.stop()
	fmt.Fprintf(d.env.stdout, "Made %d requests, %d of them writes, in %v.\n\n", driver.Made(), driver.Writes(), took)
	report, err := compared.Report(ctx)
	if err == nil {
		err = report.Text(d.env.stdout)
	}
	if err != nil || d.places.Same {
		return exitError{report.Verdict.ExitCode(), err}
	}
	conclusion, found := demo.Conclude(report)
	fmt.Fprintf(d.env.stdout, "\n%s", conclusion)
	if !found {
		return exitError{status: exitFailed}
	}
	return nil
}
