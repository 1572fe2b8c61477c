package main

import (
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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/upstream/bugzilla"
	"portico/upstream/canary/compare"
	"portico/upstream/recording"
)

// replayCommand is portico replay.
func replayCommand(env environment) *cobra.Command {
	c := &cobra.Command{
		Use: "replay FILE --tracker URL [--against URL]", Args: takes("FILE"), Short: "make recorded requests again and compare the responses",
		Long: "Send the requests of a recording to a tracker and compare its responses with the recorded ones, or\n" +
			"with those of the tracker given by --against. Requests that change something are made with --writes\n" +
			"only. Keys are not in recordings: --key and --keys say what to send in place of a placeholder.\n\n" +
			"Exit codes: 0 PASS, 1 FAIL, 2 INCONCLUSIVE or a wrong command line, 3 it could not be played.",
	}
	r := replay{env: env, options: recording.ReplayOptions{Values: map[string]string{}}, variables: map[string]string{}}
	r.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.check(); err != nil {
			return err
		}
		if err := r.readValues(); err != nil {
			return exitError{exitNoVerdict, err}
		}
		if r.config != "" {
			cfg, err := load(&config.Flags{File: r.config}, env)
			if err != nil {
				return exitError{exitNoVerdict, errors.New("read the equivalences: the configuration is not good")}
			}
			r.options.Rules, _ = compare.NewRules(cfg.Canary.Equivalences, time.Now()) // loading has reported what is wrong
		}
		file, err := os.Open(args[0])
		if err != nil {
			return exitError{exitNoVerdict, fmt.Errorf("open the recording: %w", err)}
		}
		defer file.Close()
		ctx, stop := app.UntilSignal(c.Context())
		defer stop()
		shown := newProgress(env.stderr, file)
		r.options.Progress = shown.done
		result, failed := recording.Replay(ctx, recording.NewReader(shown).Next, r.options)
		shown.close()
		if failed == nil || result.Sent > 0 {
			if err := r.print(result); err != nil {
				return exitError{exitNoVerdict, err}
			}
		}
		if failed != nil {
			return exitError{exitNoVerdict, fmt.Errorf("the recording was not played to its end: %w", failed)}
		}
		return exitError{status: result.Report.Verdict.ExitCode()}
	}
	return c
}

// replay is one run of portico replay.
type replay struct {
	env     environment
	options recording.ReplayOptions
	// target is a percentage.
	target float64
	format *string
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
	r.format = formatFlags(flags, "text", "json", "junit")
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
		value, set := r.env.variable(variable)
		if !set {
			return fmt.Errorf("the variable %s for %s is not set", variable, name)
		}
		r.options.Values[name] = value
	}
	return nil
}

// print prints the report, and what was not played beside it.
func (r *replay) print(result recording.Result) error {
	notes, report := r.env.stderr, result.Report
	if *r.format == "" || *r.format == "text" {
		notes = r.env.stdout
	}
	fmt.Fprintf(notes, "%d requests were made.\n", result.Sent)
	for _, reason := range slices.Sorted(maps.Keys(result.Skipped)) {
		fmt.Fprintf(notes, "%d were not: %s.\n", result.Skipped[reason], reason)
	}
	if result.Moved > 0 {
		fmt.Fprintf(notes, "%d had a credential in a header, which a tracker does not read; it was sent in the query.\n", result.Moved)
	}
	fmt.Fprintln(notes)
	switch *r.format {
	case "json":
		encoder := json.NewEncoder(r.env.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	case "junit":
		return report.JUnit(r.env.stdout)
	}
	return report.Text(r.env.stdout)
}

// progress shows how far the reading of a file has come: as a bar on a terminal, and elsewhere as a line now and then.
type progress struct {
	io.Reader
	to       io.Writer
	terminal bool
	// size is 0 where it is not known, as of a pipe.
	size, read int64
	shown      time.Time
	count      int
	every      time.Duration
}

// newProgress reads a file through a progress.
func newProgress(to io.Writer, file *os.File) *progress {
	p := &progress{Reader: file, to: to, every: 5 * time.Second, shown: time.Now()}
	if terminal, ok := to.(*os.File); ok {
		if about, err := terminal.Stat(); err == nil && about.Mode()&os.ModeCharDevice != 0 {
			p.terminal, p.every, p.shown = true, 100*time.Millisecond, time.Time{}
		}
	}
	if about, err := file.Stat(); err == nil && about.Mode().IsRegular() {
		p.size = about.Size()
	}
	return p
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	return n, err
}

// done is called with the number of exchanges that are done.
func (p *progress) done(count int) {
	p.count = count
	if time.Since(p.shown) >= p.every {
		p.shown = time.Now()
		p.show()
	}
}

func (p *progress) show() {
	percent := int64(100)
	if p.size > 0 {
		percent = min(100, 100*p.read/p.size)
	}
	const width = 30 // of the bar, in characters
	full := int(percent) * width / 100
	switch {
	case p.size == 0 && p.terminal:
		fmt.Fprintf(p.to, "\r%d exchanges", p.count)
	case p.terminal:
		fmt.Fprintf(p.to, "\r[%s%s] %3d %%  %d exchanges", strings.Repeat("#", full), strings.Repeat(" ", width-full), percent, p.count)
	case p.size == 0:
		fmt.Fprintf(p.to, "%d exchanges\n", p.count)
	default:
		fmt.Fprintf(p.to, "%d exchanges, %d %% of the file\n", p.count, percent)
	}
}

// close shows where it ended.
func (p *progress) close() {
	if p.terminal {
		p.show()
		fmt.Fprintln(p.to)
	}
}
