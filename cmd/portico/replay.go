package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"portico/upstream/canary"
	"portico/upstream/recording"
)

// exitNotPlayed is the exit code of portico replay when there is no verdict at all.
// It is none of the codes of a verdict.
const exitNotPlayed = 3

// replayCommand is portico replay.
func replayCommand() command {
	return command{
		name:      "replay",
		arguments: "FILE --tracker URL [--against URL] [--key NAME=VARIABLE] [--keys FILE] [--writes] [--only PATTERN] [--config FILE] [--format FORMAT]",
		summary:   "make recorded requests again and compare the answers",
		details: "Send the requests of a recording to a tracker and compare its answers with the recorded ones, or\n" +
			"with those of the tracker given by --against. Requests that change something are made with --writes\n" +
			"only. Keys are not in recordings: --key and --keys say what to send in place of a placeholder.\n\n" +
			"Exit codes: 0 PASS, 1 FAIL, 2 INCONCLUSIVE or a wrong command line, 3 it could not be played.",
		prepare: func(fs *flag.FlagSet) runner {
			r := replayRun{options: recording.PlayOptions{Values: map[string]string{}}, target: 100 * defaultReplayTarget, variables: map[string]string{}}
			r.register(fs)
			return func(ctx context.Context, env environment, args []string) (int, error) {
				files, err := parseMixed(fs, args)
				if err != nil {
					return exitUsage, err
				}
				if err := r.check(files); err != nil {
					return exitUsage, err
				}
				return r.run(ctx, env, files[0])
			}
		},
	}
}

// defaultReplayTarget is the share of mismatches that is allowed.
const defaultReplayTarget = 0.001

// replayRun is one run of portico replay.
type replayRun struct {
	options recording.PlayOptions
	// target is a percentage.
	target float64
	format string
	keys   string
	// config is the file with the equivalences.
	config string
	// variables name the environment variables for placeholders.
	variables map[string]string
}

func (r *replayRun) register(fs *flag.FlagSet) {
	fs.StringVar(&r.options.Tracker, "tracker", "", "send the requests to the tracker at `URL`")
	fs.StringVar(&r.options.Against, "against", "", "compare with the answers of the tracker at `URL`, and not with the recorded ones")
	fs.BoolVar(&r.options.Writes, "writes", false, "make requests that change something too, and put the data of reference trackers back where the recording says so")
	fs.Func("only", "play only exchanges whose name or operation is like `PATTERN`, in which * is any text; may be given often", func(text string) error {
		r.options.Only = append(r.options.Only, text)
		_, err := path.Match(text, "")
		return err
	})
	fs.Func("key", "take what the placeholder NAME stands for from the environment: `NAME=VARIABLE`; may be given often", func(text string) error {
		name, variable, found := strings.Cut(text, "=")
		if !found || name == "" || variable == "" {
			return errors.New("is not NAME=VARIABLE")
		}
		r.variables[strings.Trim(name, "{}")] = variable
		return nil
	})
	fs.StringVar(&r.keys, "keys", "", "take them from `FILE`, a JSON object of names and values")
	fs.StringVar(&r.config, "config", "", "excuse what the canary.equivalences of the configuration in `FILE` excuse")
	fs.Float64Var(&r.target, "target", r.target, "allow so many `PERCENT` of the answers to differ")
	fs.DurationVar(&r.options.Timeout, "timeout", 30*time.Second, "wait so `LONG` for an answer")
	fs.DurationVar(&r.options.ConfirmAfter, "confirm-after", 500*time.Millisecond, "ask again about a difference so `LONG` after it was seen")
	fs.StringVar(&r.format, "format", "text", "print the report as `FORMAT`: text, json or junit")
}

// check finds what is wrong with the command line.
func (r *replayRun) check(files []string) error {
	switch {
	case len(files) != 1:
		return usageError{"needs one FILE of recordings"}
	case r.options.Tracker == "":
		return usageError{"needs --tracker URL"}
	case !slices.Contains([]string{"text", "json", "junit"}, r.format):
		return usageError{fmt.Sprintf("%q is none of the formats text, json and junit", r.format)}
	case !(r.target > 0 && r.target <= 100): // which NaN is not
		return usageError{"--target is a percentage, above 0 and up to 100"}
	}
	places := map[string]bool{}
	for _, base := range []string{r.options.Tracker, r.options.Against} {
		if base == "" {
			continue
		}
		at, err := url.Parse(base)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil {
			return usageError{"the URL of a tracker must begin with http:// or https:// and a host, without a password"}
		}
		if places[placeOf(at)] {
			return usageError{"--tracker and --against are one tracker, which is always the same as itself"}
		}
		places[placeOf(at)] = true
	}
	r.options.Target = r.target / 100
	return nil
}

// run plays a file.
func (r *replayRun) run(ctx context.Context, env environment, name string) (int, error) {
	if err := cmp.Or(r.readKeys(env), r.readRules(env)); err != nil {
		return exitNotPlayed, err
	}
	file, err := os.Open(name)
	if err != nil {
		return exitNotPlayed, fmt.Errorf("open the recording: %w", err)
	}
	defer file.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	shown := newProgress(env.stderr, file)
	r.options.Progress = shown.done
	result, failed := recording.Play(ctx, recording.NewReader(shown).Next, r.options)
	shown.close()
	if failed != nil && result.Sent == 0 {
		return exitNotPlayed, failed
	}
	if err := r.print(env, result); err != nil {
		return exitNotPlayed, err
	}
	if failed != nil {
		return exitNotPlayed, fmt.Errorf("the recording was not played to its end: %w", failed)
	}
	return result.Report.Verdict.ExitCode(), nil
}

// readKeys gathers what placeholders stand for; variables count more than the file.
func (r *replayRun) readKeys(env environment) error {
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
		value, set := env.variable(variable)
		if !set {
			return fmt.Errorf("the variable %s for %s is not set", variable, name)
		}
		r.options.Values[name] = value
	}
	return nil
}

// readRules takes the equivalences from a configuration, if one is named.
func (r *replayRun) readRules(env environment) error {
	if r.config == "" {
		return nil
	}
	cfg, ok, err := (&configFlags{file: r.config}).loadOrReport(env)
	if err == nil && !ok {
		err = errors.New("the configuration is not good")
	}
	if err != nil {
		return fmt.Errorf("read the equivalences: %w", err)
	}
	r.options.Rules, _ = canary.NewRules(cfg.equivalences(), time.Now()) // what is wrong was reported
	return nil
}

// print prints the report; what was not played is told beside it.
func (r *replayRun) print(env environment, result recording.Result) error {
	tell := env.stderr
	if r.format == "text" {
		tell = env.stdout
	}
	fmt.Fprintf(tell, "%d requests were made.\n", result.Sent)
	for _, reason := range slices.Sorted(maps.Keys(result.Skipped)) {
		fmt.Fprintf(tell, "%d were not: %s.\n", result.Skipped[reason], reason)
	}
	fmt.Fprintln(tell)
	return printReport(env.stdout, result.Report, r.format)
}

func printReport(w io.Writer, report canary.Report, format string) error {
	switch format {
	case "json":
		to := json.NewEncoder(w)
		to.SetIndent("", "  ")
		return to.Encode(report)
	case "junit":
		return report.JUnit(w)
	}
	if err := report.Text(w); err != nil {
		return err
	}
	for _, f := range report.Findings {
		if f.Note != "" {
			fmt.Fprintf(w, "\n%s %s %s\n  %s\n", f.Operation, f.Class, f.Path, f.Note)
		}
	}
	return nil
}
