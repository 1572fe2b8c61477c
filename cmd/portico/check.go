package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portico/cmd/portico/config"
)

// checkCommand is portico check.
func checkCommand(env environment) *cobra.Command {
	c := &cobra.Command{
		Use: "check --config FILE | --tracker URL", Args: takes(), Short: "check a configuration as start-up does",
		Long: "Read the configuration as portico serve does and print all that is wrong with it,\n" +
			"one line each, as file:line:column: message. Exit code 1 when it could not start.",
	}
	flags := config.RegisterFlags(c.Flags())
	show := c.Flags().Bool("print", false, "print the configuration with all defaults, and the origin of each value")
	probe := c.Flags().Bool("probe", false, "also talk to the trackers, to Redis and to the store of state")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		for _, problem := range cfg.StateProblems() {
			fmt.Fprintln(env.stderr, problem)
			return exitError{status: exitFailed}
		}
		if *show {
			err = config.Print(env.stdout, cfg)
		} else {
			fmt.Fprintf(env.stdout, "The configuration is good.\n%s", summary(cfg))
		}
		if err == nil && *probe {
			err = runProbes(c.Context(), env, cfg)
		}
		return err
	}
	return c
}

// summary says in a few lines what a configuration does.
func summary(cfg config.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  clients    %s\n  operators  %s\n", cfg.Listen, cfg.Admin.Listen)
	for _, name := range config.SortedKeys(cfg.Trackers) {
		role := map[string]string{cfg.Candidate: ", candidate", cfg.Primary: ", primary"}[name]
		fmt.Fprintf(&b, "  tracker    %s: %s (dialect %s%s)\n", name, config.RedactURL(cfg.Trackers[name].URL), cfg.Trackers[name].Dialect, role)
	}
	if cfg.Cache.Scope == "off" {
		b.WriteString("  cache      off\n")
	} else {
		redis := cmp.Or(config.Printable(cfg.Cache.Redis.URL), strings.Join(cfg.Cache.Redis.Addrs, ", "))
		fmt.Fprintf(&b, "  cache      Redis %s, shared by %s, fresh for %s\n", redis, cfg.Cache.Scope, cfg.Cache.TTL)
	}
	if cfg.Candidate != "" {
		fmt.Fprintf(&b, "  state      %s\n", config.Printable(cfg.State))
		for _, line := range tableLines(cfg.Switchover.Table()) {
			fmt.Fprintf(&b, "  rule       %s\n", line)
		}
	}
	fmt.Fprintf(&b, "  other paths pass through: %s\n", cmp.Or(strings.Join(cfg.Passthrough, ", "), "none"))
	return b.String()
}
