package main

import (
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
	c := &cobra.Command{
		Use: "serve --config FILE | --tracker URL", Args: takes(), Short: "stand in front of a tracker",
		Long: "Serve legacy clients on one address and operators on another until told to stop.\n" +
			"SIGTERM drains: /readyz fails, after timeouts.shutdown_delay no new connections are accepted, and requests\n" +
			"that run are finished within timeouts.drain. A second signal ends at once.",
	}
	flags := config.RegisterFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		service := app.Service{Stderr: env.stderr, Environ: env.environ, Cfg: cfg, Reload: flags}
		return service.Serve(c.Context())
	}
	return c
}

// recordCommand is portico record.
func recordCommand(env environment) *cobra.Command {
	c := &cobra.Command{
		Use: "record --out FILE (--config FILE | --tracker URL)", Args: takes(),
		Short: "serve, and record requests and responses without credentials",
		Long: "Stand in front of a tracker as serve does, and write each exchange to a new file that portico replay\n" +
			"reads. Credentials, addresses of people and long payloads do not get into it (docs/reference/recordings.md).\n" +
			"No client waits for the file: what there is no room for is dropped, and counted at the end.",
	}
	flags := config.RegisterFlags(c.Flags())
	out := c.Flags().String("out", "", "write exchanges to `FILE`, which must not be there yet and only its owner may read")
	maxData := c.Flags().Int("data", 64<<10, "keep payloads of up to so many `BYTES` of base64, of longer ones the digest")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if *out == "" || *maxData < 1 {
			return usageError("needs --out FILE, and a positive --data")
		}
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		// Placeholders mean something within one run only, so an existing file is not continued.
		file, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("open the recording: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		recorder := recording.NewRecorder(recording.RecorderOptions{To: file, MaxData: *maxData})
		service := app.Service{Stderr: env.stderr, Environ: env.environ, Cfg: cfg, Reload: flags, Over: recorder.Handler, Started: func(clients, _ *app.Listener, _ *app.Runtime) {
			fmt.Fprintf(env.stdout, "Recording what clients ask at %s.\n", clients.URL())
		}}
		served := service.Serve(c.Context())
		counts, failed := recorder.Close()
		fmt.Fprintf(env.stdout, "%d exchanges are in %s; %d of them cannot be made again, and say why.\n", counts.Written, *out, counts.Unsendable)
		for _, reason := range slices.Sorted(maps.Keys(counts.Dropped)) {
			fmt.Fprintf(env.stdout, "%d were dropped: %s.\n", counts.Dropped[reason], map[string]string{
				"aborted": "their responses broke off",
				"queue":   "too many were waiting to be written",
				"memory":  "those that were waiting took too much memory",
				"write":   "the file could not be written",
			}[reason])
		}
		return errors.Join(served, failed)
	}
	return c
}
