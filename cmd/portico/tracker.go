package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/test/tracker"
)

// trackerCommand is portico tracker.
func trackerCommand(env environment) *cobra.Command {
	options, address := tracker.Options{Seed: tracker.SeedDemo}, ""
	c := command("tracker", "run the reference tracker alone", func(ctx context.Context, _ []string) error {
		cfg, server := config.Default(), tracker.New(options)
		logger, _ := app.NewLogger(env.stderr, cfg.Log)
		listener, err := app.Listen(nil, "tracker", address, server, cfg, logger)
		if err != nil {
			return errors.Join(err, server.Close())
		}
		fmt.Fprintf(env.stdout, "The reference tracker listens on http://%s/\n\nTest users and their API keys:\n", listener.Address())
		keys := tracker.Keys(options.Seed)
		for _, login := range slices.Sorted(maps.Keys(keys)) {
			fmt.Fprintf(env.stdout, "  %-22s %s\n", login, keys[login])
		}
		ctx, stop := app.UntilSignal(ctx)
		defer stop()
		return errors.Join(listener.RunUntil(ctx, time.Second), server.Close())
	})
	c.Long = `Serve a Bugzilla-style tracker with made-up data, to test clients and Portico itself
against. The seed fixture is the one behind the recordings in test/wire.`
	c.Flags().StringVar(&address, "listen", defaultListen, "listen on `ADDR`")
	trackerFlags(c.Flags(), &options)
	return c
}

// trackerFlags adds the flags that shape a reference tracker.
func trackerFlags(flags *pflag.FlagSet, options *tracker.Options) {
	flags.Func("seed", "start with the data `NAME`: demo, copy (that of demo with other ids and keys) or fixture", func(text string) (err error) {
		options.Seed, err = tracker.ParseSeed(text)
		return err
	})
	dialects := strings.Join(tracker.Dialects(), ", ")
	flags.Func("dialect", "be a tracker of the dialect `NAME`: "+dialects+" (default bugzilla-5)", func(text string) error {
		if !slices.Contains(tracker.Dialects(), text) {
			return fmt.Errorf("unknown dialect %q: known are %s", text, dialects)
		}
		options.Dialect = text
		return nil
	})
	flags.StringVar(&options.URLBase, "urlbase", "", "redirect requests for another host to `URL`, as BMO and Harmony do")
	flags.IntVar(&options.RateLimit, "rate-limit", 0, "block an address after `N` anonymous reads or 5 bad keys in a minute, as BMO does (0 means never)")
	flags.IntVar(&options.Params.MaxAttachmentSize, "max-attachment", 0, "take attachments of up to `KB` (0 means 1000)")
	flags.Func("quirk", "behave oddly in the way called `NAME`; may be given often", func(text string) error {
		quirk, err := tracker.ParseQuirk(text)
		options.Quirks = append(options.Quirks, quirk)
		return err
	})
	flags.StringVar(&options.Product, "product", "", "have an empty product called `NAME`, which tells this tracker from others")
	flags.Func("fault", "fail as `SPEC` says, such as op=flag_type.get,kind=error500,nth=3; may be given often", func(text string) error {
		fault, err := tracker.ParseFault(text)
		options.Faults = append(options.Faults, fault)
		return err
	})
}
