package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/test/tracker"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/switchover"
)

// demoCommand is portico demo.
func demoCommand(env environment) *cobra.Command {
	d := demo{env: env}
	c := &cobra.Command{
		Use: "demo", Args: takes(), Short: "run everything in one process, with made-up data",
		Long: "Start a reference tracker with made-up data, a second one that differs from it in some ways,\n" +
			"an embedded Redis server and Portico in front of them, and print commands to try.\n\n" +
			"With --drive it makes N requests itself, as clients do, prints what the comparison of the two trackers\n" +
			"has found, and ends. Its exit code is then the verdict: 0 PASS, 1 FAIL, 2 INCONCLUSIVE.",
	}
	listen := c.Flags().String("listen", defaultListen, "listen for clients on `ADDR`")
	adminListen := c.Flags().String("admin-listen", defaultAdminListen, "listen for operators on `ADDR`")
	c.Flags().IntVar(&d.requests, "drive", 0, "make `N` requests and end with the verdict")
	c.Flags().BoolVar(&d.same, "same", false, "let the second tracker differ in nothing")
	c.Flags().BoolVar(&d.stay, "stay", false, "go on serving after --drive until told to stop")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case d.requests < 0:
			return usageError("--drive needs a number of requests")
		case d.stay && d.requests == 0:
			return usageError("--stay is for --drive")
		}
		d.cfg = demoConfig(*listen, *adminListen)
		d.setTrackers("http://127.0.0.1", "http://127.0.0.1:1")
		for _, problem := range d.cfg.Problems(env.variable) {
			if !problem.Warning {
				return usageError("%s", problem)
			}
		}
		return d.run(c.Context())
	}
	return c
}

// demoConfig compares every read, and more of them at a time than would be good for trackers that others use. It leaves out the
// writes, of which the demo makes too few for a verdict.
func demoConfig(listen, adminListen string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen = listen, adminListen
	cfg.Log.Level = "warn"
	cfg.State = "sqlite::memory:"
	cfg.Primary, cfg.Candidate = "main", "candidate"
	rule := config.Defaults[switchover.Rule]()
	rule.Name, rule.Writes = "reads", "old"
	cfg.Switchover.Rules = []switchover.Rule{rule}
	cfg.Canary.Workers, cfg.Canary.Queue, cfg.Canary.PerSecond = 32, 4096, 5000
	// Planted slowness is 200 ms; what a busy machine does to so many calls is less.
	cfg.Canary.Latency.Slack = 150 * time.Millisecond
	return cfg
}

// demo is one run of portico demo.
type demo struct {
	env        environment
	cfg        config.Config
	requests   int
	same, stay bool
}

// setTrackers sets the addresses of the two trackers.
func (d *demo) setTrackers(primary, candidate string) {
	d.cfg.Trackers = map[string]config.Tracker{}
	for name, address := range map[string]string{d.cfg.Primary: primary, d.cfg.Candidate: candidate} {
		t := config.Defaults[config.Tracker]()
		t.URL = address
		d.cfg.Trackers[name] = t
	}
}

// run serves the two trackers, each on a free port, and Portico before them. The candidate gets the writes of the primary.
func (d *demo) run(ctx context.Context) error {
	var ofPrimary, ofCandidate []tracker.Quirk
	if !d.same {
		ofPrimary, ofCandidate = []tracker.Quirk{tracker.QuirkVolatile}, []tracker.Quirk{
			tracker.QuirkVolatile, tracker.QuirkMissingField, tracker.QuirkChangedType, tracker.QuirkReordered,
			tracker.QuirkWrongGroupValues, tracker.QuirkSlow, tracker.QuirkLag,
		}
	}
	logger := app.NewLogger(d.env.stderr, d.cfg.Log)
	first := tracker.New(tracker.Options{Seed: tracker.SeedDemo, Quirks: ofPrimary})
	second := tracker.New(tracker.Options{Follows: first, Quirks: ofCandidate})
	primary, err := app.Listen("the reference tracker", "127.0.0.1:0", first, d.cfg, logger)
	if err != nil {
		return errors.Join(err, first.Close(), second.Close())
	}
	candidate, err := app.Listen("the second reference tracker", "127.0.0.1:0", second, d.cfg, logger)
	if err != nil {
		return errors.Join(err, primary.Close(ctx), first.Close(), second.Close())
	}
	d.setTrackers(primary.URL(), candidate.URL())
	var trackers errgroup.Group
	behind, stop := context.WithCancel(context.WithoutCancel(ctx)) // for as long as Portico serves
	for _, listener := range []*app.Listener{primary, candidate} {
		trackers.Go(func() error { return listener.RunUntil(behind, time.Second) })
	}
	err = d.serve(ctx)
	stop()
	if failed := errors.Join(trackers.Wait(), first.Close(), second.Close()); failed != nil {
		return failed
	}
	return err
}

// serve runs Portico, and drives it if that is asked for.
func (d *demo) serve(ctx context.Context) error {
	signalled, forget := app.UntilSignal(ctx) // before Portico's own, since it also ends --drive
	defer forget()
	ctx, stop := context.WithCancel(signalled)
	defer stop()
	driven := make(chan error, 1)
	service := app.Service{Stderr: d.env.stderr, Environ: d.env.environ, Cfg: d.cfg}
	service.Started = func(clients, operators *app.Listener, rt *app.Runtime) {
		if d.requests == 0 {
			printTour(d.env.stdout, d.cfg, clients.URL(), operators.URL())
			return
		}
		fmt.Fprintf(d.env.stdout, "Portico is at %s, its operators' side at %s.\n", clients.URL(), operators.URL())
		go func() {
			driven <- d.drive(ctx, rt.Canary, clients.URL())
			if !d.stay {
				stop()
			}
		}()
	}
	if err := service.Serve(ctx); err != nil || d.requests == 0 {
		return err
	}
	err := <-driven
	if signalled.Err() != nil && !d.stay {
		return errors.New("it was told to end before all was compared")
	}
	return err
}

// drive makes requests, waits until they have been compared and prints the report. The error is the verdict as an exit status.
func (d *demo) drive(ctx context.Context, compared *canary.Canary, address string) error {
	driver := newDriver(address, compared)
	defer driver.client.CloseIdleConnections()
	began := time.Now()
	if err := driver.run(ctx, d.requests); err != nil {
		return exitError{verdict.Inconclusive.ExitCode(), fmt.Errorf("drive the demo: %w", err)}
	}
	fmt.Fprintf(d.env.stdout, "Made %d requests, %d of them writes, in %v.\n\n", driver.made.Load(), driver.writes, time.Since(began).Round(time.Millisecond))
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := compared.Settle(ctx); err != nil {
		return exitError{verdict.Inconclusive.ExitCode(), err}
	}
	report, err := compared.Report(ctx)
	if err == nil {
		err = report.Text(d.env.stdout)
	}
	return exitError{report.Verdict.ExitCode(), err}
}

// demoKey returns the API key of a user of the demo; user is the part of the login before the @.
func demoKey(user string) string { return tracker.Keys(tracker.SeedDemo)[user+"@demo.example"] }

// printTour prints what can be tried. All of it works as it stands.
func printTour(w io.Writer, cfg config.Config, clients, operators string) {
	primary, candidate := cfg.Trackers[cfg.Primary].URL, cfg.Trackers[cfg.Candidate].URL
	fmt.Fprintf(w, `Portico is at %[1]s, its operators' side at %[2]s,
and behind it a reference tracker at %[3]s. A second one that differs from it,
at %[5]s, is asked the same, and %[2]s/canary shows what differs.
Try, in another terminal:

# flag types of a product, twice: the second response comes from the cache
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status

# a component with a slash in its name, which the tracker itself refuses
curl -s %[3]s/rest/flag_type/WebShop/Search%%2FRanking | head -c 100; echo
curl -s %[1]s/rest/flag_type/WebShop/Search%%2FRanking

# a flag type with a list of addresses, an object of components, and a key in a header
curl -s -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"name":"qa","description":"checked","cc_list":["qa@example.com"],"inclusions":{"WebShop":["Search/Ranking"]}}'

# an attachment, and what became of it
curl -s -X POST %[1]s/rest/bug/1/attachment -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"ids":[1,2],"data":"aGVsbG8K","file_name":"hello.txt","summary":"hello","content_type":"text/plain"}'
curl -s '%[1]s/rest/bug/1/attachment?include_fields=id,file_name,data'

# something that cannot be right is refused before the tracker sees it
curl -si -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' -d '{"name":"qa","description":"d","sortkey":0}'

# what an operator sees
curl -s %[2]s/status

# what the comparison of both trackers has found by now, and what it makes of it;
# portico canary report and portico canary verdict print the same
sleep 2
curl -s %[2]s/canary/report.txt
curl -s %[2]s/canary/verdict.json
curl -s %[2]s/switchover/status.json

Stop it with Ctrl-C.
`, clients, operators, primary, demoKey("editor"), candidate)
}
