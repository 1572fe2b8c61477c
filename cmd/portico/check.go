package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"portico/cmd/portico/config"
)

// entry is one line of a result: what it is about, and what is said of it.
type entry struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// checkCommand is portico check.
func checkCommand(env environment) *cobra.Command {
	var flags *config.Flags
	var shown, probed bool
	o := output{env: env}
	c := command("check --config FILE | --tracker URL", "check a configuration as start-up does", func(ctx context.Context, _ []string) error {
		if shown && probed && !o.isText() {
			return usageError("--print and --probe print one document each: give one of them, or --output text")
		}
		cfg, list, err := checked(flags, &o)
		if err != nil {
			return err
		}
		if shown {
			if err := o.config(cfg); err != nil || !probed {
				return err
			}
		}
		list = append(list, summary(cfg)...)
		if probed {
			var probes []entry
			probes, err = runProbes(ctx, env, cfg)
			list = append(list, probes...)
		}
		return errors.Join(err, o.value(list, func(w io.Writer) error {
			fmt.Fprintln(w, "The configuration is good.")
			for _, each := range list {
				fmt.Fprintf(w, "  %-11s %s\n", each.Name, each.Text)
			}
			if err != nil {
				fmt.Fprintln(w, "The configuration is good, but a probe failed.")
			}
			return nil
		}))
	})
	c.Long = `Read the configuration as portico serve does and print all that is wrong with it,
one line each, as file:line:column: message. JSON and YAML list that too, with the name problem.
Exit code 1 when it could not start.`
	flags = config.RegisterFlags(c.Flags())
	c.Flags().BoolVar(&shown, "print", false, "print the configuration with all defaults, and the origin of each value")
	c.Flags().BoolVar(&probed, "probe", false, "also talk to the trackers, to Redis and to the store of state, and make and remove a file in blobs.dir and in the spool of the journal")
	o.flags(c.Flags())
	return c
}

// checked loads a configuration and prints its problems. Where the result is not text they also are its first entries, or all of it if one
// of them is fatal.
func checked(flags *config.Flags, o *output) (cfg config.Config, list []entry, err error) {
	cfg, problems, err := flags.Load(o.env.environ)
	if err != nil {
		return cfg, nil, usageError("%w", err)
	}
	if !config.Fatal(problems) {
		problems = append(problems, cfg.StateProblems()...)
	}
	err = o.env.tell(problems)
	if o.isText() {
		return cfg, nil, err
	}
	for _, p := range problems {
		list = append(list, entry{"problem", p.String()})
	}
	if err != nil {
		err = cmp.Or(o.value(list, nil), err)
	}
	return cfg, list, err
}

// summary says in a few lines what a configuration does.
func summary(cfg config.Config) []entry {
	list := []entry{{"clients", cfg.Listen}, {"operators", cfg.Admin.Listen}}
	for _, name := range config.SortedKeys(cfg.Trackers) {
		role := map[string]string{cfg.Candidate: ", candidate", cfg.Primary: ", primary"}[name]
		list = append(list, entry{"tracker", fmt.Sprintf("%s: %s (dialect %s%s)", name, config.RedactURL(cfg.Trackers[name].URL), cfg.Trackers[name].Dialect, role)})
		for _, warning := range writesWarnings(cfg.Switchover.Rules, name, name == cfg.Candidate, cfg.Trackers[name].Dialect) {
			list = append(list, entry{"warning", warning})
		}
	}
	cached := "off"
	if cfg.Cache.Scope != "off" {
		redis := cmp.Or(config.Printable(cfg.Cache.Redis.URL), strings.Join(cfg.Cache.Redis.Addrs, ", "))
		cached = fmt.Sprintf("Redis %s, shared by %s, fresh for %s", redis, cfg.Cache.Scope, cfg.Cache.TTL)
	}
	list = append(list, entry{"cache", cached})
	if cfg.NeedsStore() {
		list = append(list, entry{"state", config.Printable(cfg.State)})
	}
	if cfg.Candidate != "" {
		for _, line := range tableLines(cfg.Switchover.Table()) {
			list = append(list, entry{"rule", line})
		}
	}
	return append(list, entry{"other paths", "pass through: " + cmp.Or(strings.Join(cfg.Passthrough, ", "), "none")})
}
