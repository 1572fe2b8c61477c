package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/upstream/bugzilla"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

// replayCommand is portico replay.
func replayCommand(env environment) *cobra.Command {
	r := replay{output: output{env: env}, options: recording.ReplayOptions{Values: map[string]string{}}, variables: map[string]string{}}
	c := command("replay FILE --tracker URL [--against URL]", "make recorded requests again and compare the responses", func(ctx context.Context, args []string) error {
		if err := r.check(); err != nil {
			return err
		}
		result, err := r.run(ctx, args[0])
		if err != nil {
			return exitError{exitNoVerdict, err}
		}
		return exitError{status: result.ExitCode()}
	})
	c.Long = `Send the requests of a recording to a tracker and compare its responses with the recorded ones, or
with those of the tracker given by --against. Requests that change something are made with --writes
only. Keys are not in recordings: --key and --keys say what to send in place of a placeholder.

Exit codes: 0 PASS, 1 FAIL, 2 INCONCLUSIVE or a wrong command line, 3 it could not be played.`
	r.flags(c.Flags())
	return c
}

// replay is one run of portico replay.
type replay struct {
	output
	options recording.ReplayOptions
	// target is a percentage.
	target float64
	keys   string
	// config is the file with the equivalences.
	config string
	// variables name the environment variables for placeholders.
	variables map[string]string
}

func (r *replay) flags(flags *pflag.FlagSet) {
	flags.StringVar(&r.options.Tracker, "tracker", "", "send the requests to the tracker at `URL`")
	flags.StringVar(&r.options.Against, "against", "", "compare with the responses of the tracker at `URL`, and not with the recorded ones")
	flags.BoolVar(&r.options.Writes, "writes", false, "make requests that change something too, and put the data of reference trackers back where the recording says so")
	flags.Func("only", "play only exchanges whose name or operation is like `PATTERN`, in which * is any text; may be given often", func(text string) error {
		r.options.Only = append(r.options.Only, text)
		_, err := path.Match(text, "")
		return err
	})
	flags.Func("key", "take what the placeholder NAME stands for from the environment: `NAME=VARIABLE`; may be given often", func(text string) error {
		name, variable, _ := strings.Cut(text, "=")
		if name == "" || variable == "" {
			return errors.New("is not NAME=VARIABLE")
		}
		r.variables[strings.Trim(name, "{}")] = variable
		return nil
	})
	flags.StringVar(&r.keys, "keys", "", "take them from `FILE`, a JSON object of names and values")
	flags.StringVar(&r.config, "config", "", "excuse what the canary.equivalences of the configuration in `FILE` excuse")
	flags.Float64Var(&r.target, "target", 0.1, "allow so many `PERCENT` of the responses to differ")
	flags.DurationVar(&r.options.Timeout, "timeout", 30*time.Second, "timeout of one request: `DURATION`")
	flags.DurationVar(&r.options.ConfirmAfter, "confirm-after", 500*time.Millisecond, "check a difference again after `DURATION`")
	r.output.flags(flags, "junit")
}

// check finds what is wrong with the flags.
func (r *replay) check() error {
	switch {
	case r.options.Tracker == "":
		return usageError("needs --tracker URL")
	case !(r.target > 0 && r.target <= 100): // which NaN is not
		return usageError("--target is a percentage, above 0 and up to 100")
	}
	r.options.Target = r.target / 100
	places := map[string]bool{}
	for _, base := range []string{r.options.Tracker, r.options.Against} {
		if base == "" {
			continue
		}
		at, err := url.Parse(base)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil {
			return usageError("the URL of a tracker must begin with http:// or https:// and a host, without a password")
		}
		if places[bugzilla.SameAddress(at)] {
			return usageError("--tracker and --against are one tracker, which is always the same as itself")
		}
		places[bugzilla.SameAddress(at)] = true
	}
	return nil
}

// readValues gathers what placeholders stand for; variables count more than the file.
func (r *replay) readValues() error {
	if r.keys != "" {
		text, err := os.ReadFile(r.keys)
		if err != nil {
			return fmt.Errorf("read the keys: %w", err)
		}
		if err := json.Unmarshal(text, &r.options.Values); err != nil || r.options.Values == nil { // null leaves none
			return errors.New("read the keys: the file is no JSON object of names and texts") // the error might quote a key
		}
	}
	for name, variable := range r.variables {
		value := r.env.variable(variable)
		if value == "" {
			return fmt.Errorf("the variable %s for %s is not set", variable, name)
		}
		r.options.Values[name] = value
	}
	return nil
}

// run plays a recording and prints the report.
func (r *replay) run(ctx context.Context, name string) (verdict.Verdict, error) {
	if err := r.readValues(); err != nil {
		return "", err
	}
	if r.config != "" {
		cfg, err := load(&config.Flags{File: r.config}, r.env)
		if err != nil {
			return "", errors.New("read the equivalences: the configuration is not good")
		}
		r.options.Rules, _ = compare.NewRules(cfg.Canary.Equivalences, time.Now()) // loading has reported what is wrong
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("open the recording: %w", err)
	}
	defer file.Close()
	ctx, stop := app.UntilSignal(ctx)
	defer stop()
	var count atomic.Int64
	r.options.Progress = func(n int) { count.Store(int64(n)) }
	shown := r.env.progress(func() string {
		text := fmt.Sprintf("%d exchanges", count.Load())
		if about, err := file.Stat(); err == nil && about.Size() > 0 { // the size of a pipe is not known
			at, _ := file.Seek(0, io.SeekCurrent)
			text += fmt.Sprintf(", %d %% of the file", 100*at/about.Size())
		}
		return text
	})
	result, failed := recording.Replay(ctx, recording.NewReader(file).Next, r.options)
	shown.stop()
	if failed == nil || result.Sent > 0 {
		err = r.report(result)
	}
	if failed != nil {
		return "", fmt.Errorf("the recording was not played to its end: %w", unreachable(failed, "the tracker", "is it running? check --tracker and --against"))
	}
	return result.Report.Verdict, err
}

// report prints the report, and what was not played beside it.
func (r *replay) report(result recording.Result) error {
	notes := r.env.stderr
	if r.isText() {
		notes = r.env.stdout
	}
	fmt.Fprintf(notes, "Requests made: %d.\n", result.Sent)
	for _, reason := range slices.Sorted(maps.Keys(result.Skipped)) {
		fmt.Fprintf(notes, "Not made: %d (%s).\n", result.Skipped[reason], reason)
	}
	if result.Moved > 0 {
		fmt.Fprintf(notes, "%d had a credential in a header, which a tracker does not read; it was sent in the query.\n", result.Moved)
	}
	fmt.Fprintln(notes)
	if r.format == "junit" {
		return result.Report.JUnit(r.env.stdout)
	}
	return r.value(result.Report, result.Report.Text)
}
