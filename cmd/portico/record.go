package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"portico/upstream/recording"
)

// recordCommand is portico record.
func recordCommand() command {
	return command{
		name:      "record",
		arguments: "--out FILE (--config FILE | --tracker URL) [--data BYTES] [--listen ADDR] [--admin-listen ADDR]",
		summary:   "serve, and write down what is asked and answered, without credentials",
		details: "Stand in front of a tracker as serve does, and write each exchange to a new file that portico replay\n" +
			"reads. Credentials, addresses of people and long payloads do not get into it (docs/recordings.md).\n" +
			"No client waits for the file: what there is no room for is dropped, and counted at the end.",
		prepare: func(fs *flag.FlagSet) runner {
			r := recordRun{flags: registerConfigFlags(fs)}
			fs.StringVar(&r.out, "out", "", "write exchanges to `FILE`, which must not be there yet and only its owner may read")
			fs.IntVar(&r.options.MaxData, "data", 64<<10, "keep payloads of up to so many `BYTES` of base64, of longer ones the digest")
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if err := noArguments(args); err != nil {
					return exitUsage, err
				}
				if r.out == "" || r.options.MaxData < 1 {
					return exitUsage, usageError{"needs --out FILE, and a positive --data"}
				}
				if err := r.run(ctx, env); err != nil {
					return exitFailed, err
				}
				return exitOK, nil
			}
		},
	}
}

// recordRun is one run of portico record.
type recordRun struct {
	flags   *configFlags
	out     string
	options recording.TapeOptions
}

func (r *recordRun) run(ctx context.Context, env environment) (err error) {
	cfg, good, err := r.flags.loadOrReport(env)
	if err != nil {
		return err
	}
	if !good {
		return errNotGood
	}
	// Placeholders mean something within one run only.
	file, err := os.OpenFile(r.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("open the recording: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r.options.To = file
	tape := recording.NewTape(r.options)
	host := facade{env: env, cfg: cfg, reload: r.flags, over: tape.Over, started: func(p *program) {
		fmt.Fprintf(env.stdout, "Recording what clients ask at %s.\n", address(p.listeners[0]))
	}}
	served := host.serve(ctx)
	counts, failed := tape.Close()
	tellCounts(env.stdout, r.out, counts)
	return errors.Join(served, failed)
}

// tellCounts says what became of the exchanges.
func tellCounts(w io.Writer, out string, counts recording.Counts) {
	fmt.Fprintf(w, "%d exchanges are in %s; %d of them cannot be made again, and say why.\n", counts.Written, out, counts.Unsendable)
	for _, reason := range slices.Sorted(maps.Keys(counts.Dropped)) {
		fmt.Fprintf(w, "%d were dropped: %s.\n", counts.Dropped[reason], map[string]string{
			"aborted": "their answers broke off",
			"queue":   "too many were waiting to be written",
			"memory":  "those that were waiting took too much memory",
			"write":   "the file could not be written",
		}[reason])
	}
}
