package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"portico/test/tracker"
)

// trackerCommand is portico tracker.
func trackerCommand() command {
	return command{
		name:      "tracker",
		arguments: "[--listen ADDR] [--seed demo|fixture] [--dialect NAME] [--quirk NAME] [--fault SPEC] [--product NAME]",
		summary:   "run the reference tracker alone",
		details: "Serve a Bugzilla-style tracker with made-up data, to test clients and Portico itself\n" +
			"against. The seed fixture is the one behind the recordings in test/wire.",
		prepare: func(fs *flag.FlagSet) runner {
			options := tracker.Options{Seed: tracker.SeedDemo}
			address := fs.String("listen", Default().Listen, "listen on `ADDR`")
			registerTrackerFlags(fs, &options)
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if err := noArguments(args); err != nil {
					return exitUsage, err
				}
				return runTracker(ctx, env, *address, options)
			}
		},
	}
}

// registerTrackerFlags adds the flags that shape a reference tracker.
func registerTrackerFlags(fs *flag.FlagSet, options *tracker.Options) {
	fs.Func("seed", "start with the data `NAME`: demo or fixture", func(text string) error {
		seed, err := tracker.ParseSeed(text)
		options.Seed = seed
		return err
	})
	fs.Func("dialect", "be a tracker of the dialect `NAME`: bugzilla-5 or bmo (default bugzilla-5)", func(text string) error {
		if text != tracker.DialectBugzilla5 && text != tracker.DialectBMO {
			return fmt.Errorf("unknown dialect %q: known are %s and %s", text, tracker.DialectBugzilla5, tracker.DialectBMO)
		}
		options.Dialect = text
		return nil
	})
	fs.IntVar(&options.Params.MaxAttachmentSize, "max-attachment", 0, "take attachments of up to `KB` (0 means 1000)")
	fs.Func("quirk", "behave oddly in the way called `NAME`; may be given often", func(text string) error {
		quirk, err := tracker.ParseQuirk(text)
		options.Quirks = append(options.Quirks, quirk)
		return err
	})
	fs.StringVar(&options.Product, "product", "", "have a product called `NAME` with nothing in it, to be told from others by")
	fs.Func("fault", "fail as `SPEC` says, such as op=flag_type.get,kind=error500,nth=3; may be given often", func(text string) error {
		fault, err := tracker.ParseFault(text)
		options.Faults = append(options.Faults, fault)
		return err
	})
}

func runTracker(ctx context.Context, env environment, address string, options tracker.Options) (int, error) {
	cfg := Default()
	logger := newLogger(env.stderr, cfg.Log)
	server := tracker.New(options)
	front, err := listen("tracker", address, server, cfg, logger)
	if err != nil {
		_ = server.Close()
		return exitFailed, err
	}
	fmt.Fprintf(env.stdout, "The reference tracker listens on http://%s/\n", front.address())
	ctx, stop := untilSignal(ctx)
	defer stop()
	p := program{logger: logger, listeners: []*listener{front}, draining: func() {}, closers: []func(){func() { _ = server.Close() }}}
	if err := p.run(ctx, func() time.Duration { return time.Second }, stop); err != nil {
		return exitFailed, err
	}
	return exitOK, nil
}
