package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/upstream/recording"
)

// serveCommand is portico serve.
func serveCommand(env environment) *cobra.Command {
	var flags *config.Flags
	c := command("serve --config FILE | --tracker URL", "stand in front of a tracker", func(ctx context.Context, _ []string) error {
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		service := app.New(env.stderr, cfg)
		service.Reload = func() (config.Config, []config.Problem, error) { return flags.Load(env.environ) }
		if err := service.Serve(ctx); err != nil { // in the form of the log, since programs may read it
			logger, _ := app.NewLogger(env.stderr, cfg.Log)
			logger.Error("cannot serve", "cause", err)
			return exitError{status: exitFailed}
		}
		return nil
	})
	c.Long = `Serve legacy clients on one address and operators on another until told to stop.
SIGTERM drains: /readyz fails, after timeouts.shutdown_delay no new connections are accepted, and requests
that run are finished within timeouts.drain. A second signal ends at once.`
	flags = config.RegisterFlags(c.Flags())
	return c
}

// recordCommand is portico record.
func recordCommand(env environment) *cobra.Command {
	var flags *config.Flags
	var out string
	var maxData int
	c := command("record --out FILE (--config FILE | --tracker URL)", "serve, and record requests and responses without credentials", func(ctx context.Context, _ []string) error {
		if out == "" || maxData < 1 {
			return usageError("needs --out FILE, and a positive --data")
		}
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		// Placeholders mean something within one run only, so an existing file is not continued.
		file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("open the recording: %w", err)
		}
		return record(ctx, env, cfg, flags, file, maxData)
	})
	c.Long = `Stand in front of a tracker as serve does, and write each exchange to a new file that portico replay
reads. Credentials, addresses of people and long payloads do not get into it (docs/reference/recordings.md).
No client waits for the file: an exchange that the queue cannot take is dropped, and counted at the end.`
	flags = config.RegisterFlags(c.Flags())
	c.Flags().StringVar(&out, "out", "", "write exchanges to `FILE`, which must not be there yet and only its owner may read")
	c.Flags().IntVar(&maxData, "data", 64<<10, "keep payloads of up to so many `BYTES` of base64, of longer ones the digest")
	return c
}

// record serves, and records to a file, which it closes. In the end it prints what became of the exchanges, unless there were none because it
// could not serve.
func record(ctx context.Context, env environment, cfg config.Config, reload *config.Flags, file *os.File, maxData int) error {
	var shown *progress
	recorder := recording.NewRecorder(recording.RecorderOptions{To: file, MaxData: maxData, Failed: func(err error) {
		fmt.Fprintf(shown, "portico record: %v; clients are still served, but nothing more is recorded\n", err)
	}})
	shown = env.progress(func() string {
		counts, _ := recorder.Counts()
		return fmt.Sprintf("%d exchanges recorded", counts.Written)
	})
	service := app.New(shown, cfg)
	service.Reload = func() (config.Config, []config.Problem, error) { return reload.Load(env.environ) }
	service.Over = recorder.Handler
	service.Started = func(clients, _ *app.Listener, _ *app.Runtime) {
		fmt.Fprintf(env.stdout, "Recording what clients ask at %s.\n", clients.URL())
	}
	served := service.Serve(ctx)
	counts, failed := recorder.Close()
	shown.stop()
	if served != nil && counts.Written == 0 { // the file would be in the way of the next try
		return errors.Join(served, failed, file.Close(), os.Remove(file.Name()))
	}
	fmt.Fprintf(env.stdout, "%d exchanges are in %s; %d of them cannot be made again, and say why.\n", counts.Written, file.Name(), counts.Unsendable)
	for _, reason := range slices.Sorted(maps.Keys(counts.Dropped)) {
		fmt.Fprintf(env.stdout, "Dropped: %d (%s).\n", counts.Dropped[reason], reason)
	}
	return errors.Join(served, failed, file.Close())
}
