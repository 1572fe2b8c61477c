package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// exitNoVerdict is the exit status of portico canary verdict and portico replay where there is no verdict at all. No verdict has it.
const exitNoVerdict = 3

// canaryCommand is portico canary.
func canaryCommand(env environment) *cobra.Command {
	a := &adminClient{output: output{env: env}}
	c := a.group("canary", "show findings of the comparison of two trackers, and accept them",
		`Ask a running Portico through its admin listener. Commands that change something need --actor and --reason,
except sampling.

Exit codes of verdict: 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 when there is no verdict because Portico
could not be reached. Only PASS is 0. Of the others: 0 it worked, 1 it did not. A wrong command line is 2.`,
		[]string{"junit"},
		command("report", "print all findings", func(ctx context.Context, _ []string) error {
			suffix := map[string]string{"json": "json", "yaml": "json", "junit": "xml"}[a.format]
			text, err := a.get(ctx, "/canary/report."+cmp.Or(suffix, "txt"))
			if err != nil {
				return err
			}
			return a.print(text, nil)
		}),
		canaryFindingsCommand(a),
		command("show SIGNATURE", "print one finding with an example", func(ctx context.Context, args []string) error {
			return fetch(ctx, a, "/canary/findings/"+url.PathEscape(args[0])+".json", renderFinding)
		}),
		canaryVerdictCommand(a), canarySamplingCommand(a),
		canaryJudgeCommand(a, "accept", "let findings no longer count", "Accepted."),
		canaryJudgeCommand(a, "reopen", "let findings count again", "Reopened."),
		canaryJudgeCommand(a, "fixed", "mark findings as fixed", "Marked as fixed. Its operation starts again from zero."),
		command("reset", "discard earlier results", func(ctx context.Context, _ []string) error {
			return change(ctx, a, "/canary/reset", map[string]any{}, line("Reset. Earlier results are discarded."))
		}))
	a.signatureFlags(c.PersistentFlags())
	return c
}

// canaryVerdictCommand is portico canary verdict. It asks once: the next response may differ.
func canaryVerdictCommand(a *adminClient) *cobra.Command {
	return command("verdict", "print the verdict; the exit code is the verdict", func(ctx context.Context, _ []string) error {
		path := "/canary/report.json"
		if a.format == "json" || a.format == "yaml" {
			path = "/canary/verdict.json"
		}
		text, err := a.get(ctx, path)
		if err != nil {
			return exitError{exitNoVerdict, err}
		}
		var found struct{ Verdict verdict.Verdict }
		if err := json.Unmarshal(text, &found); err != nil || found.Verdict == "" {
			return exitError{exitNoVerdict, errors.New("the admin listener gives no verdict")}
		}
		err = printed(a, text, nil, func(w io.Writer, report *verdict.Report) {
			if a.format == "junit" {
				_ = report.JUnit(w) // w is in memory
				return
			}
			fmt.Fprintf(w, "%s: %d compared, %d mismatches, the rate is below %.3g %% at 95 %% confidence (target %.3g %%)\n",
				report.Verdict, report.Overall.Compared, report.Overall.Confirmed, 100*report.Overall.UpperBound, 100*report.Target)
			for _, reason := range report.Overall.Reasons {
				fmt.Fprintf(w, "  %s\n", reason)
			}
		})
		if err != nil {
			return exitError{exitNoVerdict, err}
		}
		return exitError{status: found.Verdict.ExitCode()}
	})
}

// finding is one finding with its samples, as the listener has it.
type finding struct {
	Finding state.Finding
	Samples []struct {
		At     time.Time
		Sample canary.SampleText
	}
}

// canaryFindingsCommand is portico canary findings.
func canaryFindingsCommand(a *adminClient) *cobra.Command {
	query := url.Values{}
	c := command("findings", "print the findings that match filters", func(ctx context.Context, _ []string) error {
		return fetch(ctx, a, "/canary/findings.json?"+query.Encode(), func(w io.Writer, list *struct{ Findings []state.Finding }) {
			fmt.Fprintln(w, "finding\tstatus\toperation\tclass\tpath\tseen\tlast")
			for _, f := range list.Findings {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", f.Signature, f.Status, f.Operation, f.Class, oneLine(f.Path), f.Count, f.Last.Format(time.DateTime))
			}
		})
	})
	for name, usage := range map[string]string{
		"status": "only findings with the `STATUS` open, accepted or fixed", "operation": "only those of the operation `NAME`",
		"class": "only those of the class `NAME`", "caller": "only those seen for the caller `NAME`", "product": "only those seen in the product `NAME`",
		"path": "only those whose path contains `TEXT`",
	} {
		c.Flags().Func(name, usage, func(value string) error {
			query.Set(name, value)
			return nil
		})
	}
	return c
}

// renderFinding prints a finding and the latest of its samples. What was typed or sent by others is kept in its line.
func renderFinding(w io.Writer, found *finding) {
	put := func(name, form string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, oneLine(fmt.Sprintf(form, args...)))
	}
	f, stamp := found.Finding, "2006-01-02 15:04:05Z07:00"
	put("finding", "%s, %s", f.Signature, f.Status)
	put("operation", "%s", f.Operation)
	put("class", "%s %s", f.Class, f.Path)
	put("seen", "%d times, from %s to %s", f.Count, f.First.Format(stamp), f.Last.Format(stamp))
	if f.Note != "" {
		put("what", "%s", f.Note)
	}
	if f.Actor != "" {
		put("judgement", "%s by %s: %s", f.Status, f.Actor, f.Reason)
	}
	if !f.Until.IsZero() {
		put("until", "%s", f.Until.Format(stamp))
	}
	if len(found.Samples) == 0 {
		put("example", "no sample was kept")
		return
	}
	at, sample := found.Samples[0].At, found.Samples[0].Sample
	put("example", "%s %s at %s, caller %s", sample.Method, sample.Target, at.Format(stamp), sample.Caller)
	for _, d := range sample.Differences {
		put("difference", "%s at %s", d.Class, d.Pointer)
		put("  reference", "%s", inOneOrder(d.Want))
		put("  candidate", "%s", inOneOrder(d.Have))
	}
	put("reference", "%d %s", sample.AnsweredStatus, inOneOrder(sample.Answered))
	put("candidate", "%d %s", sample.OtherStatus, inOneOrder(sample.Other))
}

// inOneOrder writes JSON in one line with its members in one order.
func inOneOrder(value jsontext.Value) string {
	if value.Format(jsontext.ReorderRawObjects(true)) != nil {
		return "nothing"
	}
	return string(value)
}

// canaryJudgeCommand is portico canary accept, reopen or fixed.
func canaryJudgeCommand(a *adminClient, verb, short, done string) *cobra.Command {
	until := ""
	c := command(verb+" SIGNATURE...", short, func(ctx context.Context, args []string) error {
		return change(ctx, a, "/canary/judgements/"+verb, map[string]any{"until": until, "signatures": args}, line(done))
	})
	if verb == "accept" {
		c.Flags().StringVar(&until, "until", "", "accept until `WHEN`: 2030-12-31, a time as in RFC 3339, or a length of time such as 48h or 30d")
	}
	return c
}

func renderSampling(w io.Writer, sampling *canary.Sampling) {
	units, rest := "requests", "all operations"
	if sampling.Sticky {
		units = "callers"
	}
	for _, operation := range slices.Sorted(maps.Keys(sampling.Operations)) {
		fmt.Fprintf(w, "%s\t%.3g %% of %s\n", operation, 100*sampling.Operations[operation], units)
		rest = "other operations"
	}
	fmt.Fprintf(w, "%s\t%.3g %% of %s\n", rest, 100*sampling.Default, units)
}

// canarySamplingCommand is portico canary sampling.
func canarySamplingCommand(a *adminClient) *cobra.Command {
	changed, operations := map[string]any{}, map[string]float64{}
	c := command("sampling", "show which calls are compared, or change it until the next reload", func(ctx context.Context, _ []string) error {
		if len(changed) == 0 {
			return fetch(ctx, a, "/canary/sampling.json", renderSampling)
		}
		text, err := a.call(ctx, http.MethodPost, "/canary/sampling", changed)
		return printed(a, text, err, renderSampling)
	})
	c.Flags().Func("sample", "compare the `SHARE` of the calls, from 0 to 1", func(text string) error {
		share, err := strconv.ParseFloat(text, 64)
		changed["default"] = share
		return err
	})
	c.Flags().BoolFunc("sticky", "take the sample by caller", func(text string) (err error) {
		changed["sticky"], err = strconv.ParseBool(text)
		return err
	})
	c.Flags().Func("operation", "compare another share of one operation, as `NAME=SHARE`; may be given often", func(text string) error {
		name, number, _ := strings.Cut(text, "=")
		share, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return errors.New("is not NAME=SHARE")
		}
		operations[name] = share
		changed["operations"] = operations
		return nil
	})
	return c
}
