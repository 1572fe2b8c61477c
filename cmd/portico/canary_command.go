package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/upstream/canary"
)

// exitNotAsked is the exit code of portico canary verdict when there is no verdict
// at all. It is none of the codes of a verdict.
const exitNotAsked = 3

// canaryCommand is portico canary.
func canaryCommand() command {
	return command{
		name:      "canary",
		arguments: "report | verdict | accept SIGNATURE | reopen SIGNATURE | fixed SIGNATURE | reset | sampling [flags]",
		summary:   "what the comparison of two trackers found, and what people think of it",
		details: "Ask the operators' listener of a running Portico. report prints all that was found, verdict only\n" +
			"the verdict. accept, reopen and fixed judge a finding; reset begins anew; sampling shows which calls\n" +
			"are compared, and with --sample, --operation or --sticky changes it until the next reload. What\n" +
			"changes something needs --actor and --reason, except sampling.\n\n" +
			"Exit codes of verdict: 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 when there is no verdict because Portico\n" +
			"could not be asked. Only PASS is 0. Of the others: 0 it worked, 1 it did not. A wrong command line is 2.",
		prepare: func(fs *flag.FlagSet) runner {
			c := canaryCaller{}
			c.register(fs)
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if len(args) == 0 {
					return exitUsage, usageError{"needs a word: report, verdict, accept, reopen, fixed, reset or sampling"}
				}
				rest, err := parseMixed(fs, args[1:])
				if err != nil {
					return exitUsage, err
				}
				fs.Visit(func(f *flag.Flag) { c.set = append(c.set, f.Name) })
				return c.run(ctx, env.stdout, args[0], rest)
			}
		},
	}
}

// canaryCaller asks the operators' listener about the comparison.
type canaryCaller struct {
	operatorsCaller

	format               string
	actor, reason, until string
	sampling             canary.Sampling
	// set are the names of the flags that were given.
	set []string
}

func (c *canaryCaller) register(fs *flag.FlagSet) {
	c.operatorsCaller.register(fs)
	fs.StringVar(&c.format, "format", "text", "print a report or verdict as `FORMAT`: text, json or junit")
	fs.StringVar(&c.actor, "actor", "", "`NAME` is who does it, for the audit trail")
	fs.StringVar(&c.reason, "reason", "", "`TEXT` is why, for the audit trail")
	fs.StringVar(&c.until, "until", "", "accept until `WHEN`: 2030-12-31, a time as in RFC 3339, or a length of time such as 48h or 30d")
	fs.Float64Var(&c.sampling.Default, "sample", 0, "compare the `SHARE` of the calls, from 0 to 1")
	fs.Func("operation", "compare another share of one operation, as `NAME=SHARE`; may be given often", c.addOperation)
	fs.BoolVar(&c.sampling.Sticky, "sticky", false, "take the sample by caller")
}

func (c *canaryCaller) addOperation(text string) error {
	name, number, _ := strings.Cut(text, "=")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return errors.New("is not NAME=SHARE")
	}
	if message := unknownOperation(name); message != "" {
		return errors.New(message)
	}
	if c.sampling.Operations == nil {
		c.sampling.Operations = map[mapping.Operation]float64{}
	}
	c.sampling.Operations[mapping.Operation(name)] = share
	return nil
}

// reportPaths are where the listener has a report in each format.
var reportPaths = map[string]string{"text": "/canary/report.txt", "json": "/canary/report.json", "junit": "/canary/report.xml"}

func (c *canaryCaller) run(ctx context.Context, w io.Writer, word string, args []string) (int, error) {
	if _, known := reportPaths[c.format]; !known {
		return exitNotAsked, usageError{fmt.Sprintf("%q is none of the formats text, json and junit", c.format)}
	}
	switch {
	case word == "report" && len(args) == 0:
		return exitOK, c.show(ctx, w, reportPaths[c.format])
	case word == "verdict" && len(args) == 0:
		return c.verdict(ctx, w)
	case slices.Contains([]string{"accept", "reopen", "fixed"}, word) && len(args) == 1:
		return exitOK, c.judge(ctx, w, word, args[0])
	case word == "reset" && len(args) == 0:
		return exitOK, c.change(ctx, w, "/canary/reset", "Begun anew.\n")
	case word == "sampling" && len(args) == 0:
		return exitOK, c.sample(ctx, w)
	}
	return exitUsage, usageError{"takes report, verdict, accept SIGNATURE, reopen SIGNATURE, fixed SIGNATURE, reset or sampling"}
}

// show prints what the listener has under a path.
func (c *canaryCaller) show(ctx context.Context, w io.Writer, path string) error {
	text, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// verdict prints the verdict and gives it as exit code. It asks once: the next answer may be another.
func (c *canaryCaller) verdict(ctx context.Context, w io.Writer) (int, error) {
	path := reportPaths["json"]
	if c.format == "json" {
		path = "/canary/verdict.json"
	}
	text, err := c.get(ctx, path)
	if err != nil {
		return exitNotAsked, err
	}
	var said struct {
		Verdict canary.Verdict `json:"verdict"`
	}
	known := []canary.Verdict{canary.Pass, canary.Fail, canary.Inconclusive}
	if err := json.Unmarshal(text, &said); err != nil || !slices.Contains(known, said.Verdict) {
		return exitNotAsked, fmt.Errorf("the operators' listener gives no verdict, but %q", said.Verdict)
	}
	if c.format == "json" {
		_, err = w.Write(text)
	} else {
		err = c.tellVerdict(w, text)
	}
	if err != nil {
		return exitNotAsked, err
	}
	return said.Verdict.ExitCode(), nil
}

// tellVerdict prints the verdict of a report.
func (c *canaryCaller) tellVerdict(w io.Writer, text []byte) error {
	var report canary.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("read the report of the operators' listener: %w", err)
	}
	if c.format == "junit" {
		return report.JUnit(w)
	}
	fmt.Fprintf(w, "%s: %d compared, %d mismatches, the rate is below %.3g %% at 95 %% confidence (target %.3g %%)\n",
		report.Verdict, report.Overall.Compared, report.Overall.Confirmed, 100*report.Overall.UpperBound, 100*report.Target)
	for _, reason := range report.Overall.Reasons {
		fmt.Fprintf(w, "  %s\n", reason)
	}
	return nil
}

// judge says what somebody thinks of a finding.
func (c *canaryCaller) judge(ctx context.Context, w io.Writer, word, signature string) error {
	if strings.Trim(signature, ". ") == "" {
		return usageError{fmt.Sprintf("%q is no signature of a finding, which the report shows", signature)} // nor a part of a path
	}
	done := map[string]string{"accept": "Accepted.\n", "reopen": "Reopened.\n", "fixed": "Marked as fixed. The comparisons of its operation count anew.\n"}[word]
	return c.change(ctx, w, "/canary/findings/"+url.PathEscape(signature)+"/"+word, done)
}

// change asks for a change that is signed.
func (c *canaryCaller) change(ctx context.Context, w io.Writer, path, done string) error {
	form, err := signed(c.actor, c.reason)
	if err != nil {
		return err
	}
	if c.until != "" {
		form.Set("until", c.until)
	}
	if _, err := c.post(ctx, path, form); err != nil {
		return err
	}
	_, err = io.WriteString(w, done)
	return err
}

// signed is a form that says who changes something, and why.
func signed(actor, reason string) (url.Values, error) {
	if strings.TrimSpace(actor) == "" || strings.TrimSpace(reason) == "" {
		return nil, usageError{"needs --actor and --reason, which are kept in the audit trail"}
	}
	return url.Values{"actor": {actor}, "reason": {reason}}, nil
}

// sample shows which calls are compared, after a change if one was asked for.
func (c *canaryCaller) sample(ctx context.Context, w io.Writer) error {
	changes := slices.ContainsFunc(c.set, func(name string) bool { return slices.Contains([]string{"sample", "operation", "sticky"}, name) })
	if !changes {
		return c.show(ctx, w, "/canary/sampling.json")
	}
	var next canary.Sampling
	if err := c.getJSON(ctx, "/canary/sampling.json", &next); err != nil {
		return err
	}
	if slices.Contains(c.set, "sample") {
		next.Default = c.sampling.Default
	}
	if slices.Contains(c.set, "sticky") {
		next.Sticky = c.sampling.Sticky
	}
	for operation, share := range c.sampling.Operations {
		if next.Operations == nil {
			next.Operations = map[mapping.Operation]float64{}
		}
		next.Operations[operation] = share
	}
	text, err := c.postJSON(ctx, "/canary/sampling", next)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
