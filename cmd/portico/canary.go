package main

import (
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

	"github.com/spf13/cobra"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
)

// exitNoVerdict is the exit status of portico canary verdict and portico replay where there is no verdict at all. No verdict has it.
const exitNoVerdict = 3

// canaryCommand is portico canary.
func canaryCommand(env environment) *cobra.Command {
	a := &adminClient{out: env.stdout}
	c := group(&cobra.Command{
		Use: "canary", Short: "show findings of the comparison of two trackers, and accept them",
		Long: "Call the operators' listener of a running Portico. report prints all findings, verdict only\n" +
			"the verdict. accept, reopen and fixed judge a finding; reset discards earlier results; sampling shows and changes\n" +
			"which calls are compared. Changes need --actor and --reason, except those of sampling.\n\n" +
			"Exit codes of verdict: 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 when there is no verdict because Portico\n" +
			"could not be reached. Only PASS is 0. Of the others: 0 it worked, 1 it did not. A wrong command line is 2.",
	},
		canaryReportCommand(a), canaryVerdictCommand(a), canarySamplingCommand(a),
		canaryJudgeCommand(a, "accept", "let a finding no longer count", "Accepted."),
		canaryJudgeCommand(a, "reopen", "let a finding count again", "Reopened."),
		canaryJudgeCommand(a, "fixed", "mark a finding as fixed", "Marked as fixed. Its operation starts again from zero."),
		canaryResetCommand(a))
	a.flags(c.PersistentFlags())
	a.signatureFlags(c.PersistentFlags())
	a.format = formatFlags(c.PersistentFlags(), "text", "json", "junit")
	return c
}

// canaryReportCommand is portico canary report.
func canaryReportCommand(a *adminClient) *cobra.Command {
	return &cobra.Command{Use: "report", Args: takes(), Short: "print all findings", RunE: func(c *cobra.Command, _ []string) error {
		suffix := map[string]string{"json": "json", "junit": "xml"}[*a.format]
		if suffix == "" {
			suffix = "txt"
		}
		return a.show(c.Context(), "/canary/report."+suffix, nil, nil)
	}}
}

// canaryVerdictCommand is portico canary verdict. It asks once: the next response may differ.
func canaryVerdictCommand(a *adminClient) *cobra.Command {
	return &cobra.Command{Use: "verdict", Args: takes(), Short: "print the verdict; the exit code is the verdict", RunE: func(c *cobra.Command, _ []string) error {
		path := "/canary/report.json"
		if *a.format == "json" {
			path = "/canary/verdict.json"
		}
		text, err := a.get(c.Context(), path)
		if err != nil {
			return exitError{exitNoVerdict, err}
		}
		var found struct{ Verdict verdict.Verdict }
		known := []verdict.Verdict{verdict.Pass, verdict.Fail, verdict.Inconclusive}
		if err := json.Unmarshal(text, &found); err != nil || !slices.Contains(known, found.Verdict) {
			return exitError{exitNoVerdict, fmt.Errorf("the operators' listener gives no verdict, but %q", found.Verdict)}
		}
		var report verdict.Report
		err = a.print(text, &report, func(w io.Writer) {
			if *a.format == "junit" {
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
	}}
}

// canaryJudgeCommand is portico canary accept, reopen or fixed.
func canaryJudgeCommand(a *adminClient, verb, short, done string) *cobra.Command {
	c := &cobra.Command{Use: verb + " SIGNATURE", Args: takes("SIGNATURE"), Short: short}
	until := ""
	if verb == "accept" {
		c.Flags().StringVar(&until, "until", "", "accept until `WHEN`: 2030-12-31, a time as in RFC 3339, or a length of time such as 48h or 30d")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if strings.Trim(args[0], ". ") == "" { // nor a part of a path
			return usageError("invalid signature %q; see portico canary report", args[0])
		}
		path := "/canary/findings/" + url.PathEscape(args[0]) + "/" + verb
		return a.change(c.Context(), path, map[string]any{"until": until}, &struct{}{}, line(done))
	}
	return c
}

// canaryResetCommand is portico canary reset.
func canaryResetCommand(a *adminClient) *cobra.Command {
	return &cobra.Command{Use: "reset", Args: takes(), Short: "discard earlier results", RunE: func(c *cobra.Command, _ []string) error {
		return a.change(c.Context(), "/canary/reset", map[string]any{}, &struct{}{}, line("Reset. Earlier results are discarded."))
	}}
}

// canarySamplingCommand is portico canary sampling.
func canarySamplingCommand(a *adminClient) *cobra.Command {
	c := &cobra.Command{Use: "sampling", Args: takes(), Short: "show which calls are compared, or change it until the next reload"}
	share := c.Flags().Float64("sample", 0, "compare the `SHARE` of the calls, from 0 to 1")
	sticky := c.Flags().Bool("sticky", false, "take the sample by caller")
	operations := map[mapping.Operation]float64{}
	c.Flags().Func("operation", "compare another share of one operation, as `NAME=SHARE`; may be given often", func(text string) error {
		name, number, _ := strings.Cut(text, "=")
		share, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return errors.New("is not NAME=SHARE")
		}
		operations[mapping.Operation(name)] = share
		return config.CheckOperation(name)
	})
	c.RunE = func(c *cobra.Command, _ []string) error {
		const path = "/canary/sampling.json"
		text, err := a.get(c.Context(), path)
		newShare, newSticky := c.Flags().Changed("sample"), c.Flags().Changed("sticky")
		if err == nil && (newShare || newSticky || len(operations) > 0) {
			next := canary.Sampling{Operations: map[mapping.Operation]float64{}}
			if err := json.Unmarshal(text, &next); err != nil {
				return err
			}
			if newShare {
				next.Default = *share
			}
			if newSticky {
				next.Sticky = *sticky
			}
			maps.Copy(next.Operations, operations)
			text, err = a.call(c.Context(), http.MethodPost, "/canary/sampling", next)
		}
		if err != nil {
			return err
		}
		return a.print(text, nil, nil)
	}
	return c
}
