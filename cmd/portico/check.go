package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

// checkCommand is portico check.
func checkCommand() command {
	return command{
		name:      "check",
		arguments: "--config FILE | --tracker URL [flags]",
		summary:   "check a configuration as start-up does",
		details: "Read the configuration as portico serve does and print all that is wrong with it,\n" +
			"one line each, as file:line:column: message. Exit code 1 when it could not start.",
		prepare: func(fs *flag.FlagSet) runner {
			flags := registerConfigFlags(fs)
			show := fs.Bool("print", false, "print the configuration as it holds, with the origin of each value")
			probe := fs.Bool("probe", false, "also talk to the trackers, to Redis and to the store of state")
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if err := noArguments(args); err != nil {
					return exitUsage, err
				}
				cfg, ok, err := flags.loadOrReport(env)
				if err != nil || !ok {
					return exitFailed, err
				}
				if more := stateProblems(&cfg); len(more) > 0 {
					fmt.Fprintln(env.stderr, more[0])
					return exitFailed, nil
				}
				if *show {
					if err := printConfig(env.stdout, cfg); err != nil {
						return exitFailed, err
					}
				} else {
					fmt.Fprintf(env.stdout, "The configuration is good.\n%s", summary(cfg))
				}
				if *probe && !runProbes(ctx, env.stdout, probes(cfg, env.variable)) {
					return exitFailed, nil
				}
				return exitOK, nil
			}
		},
	}
}

// loadOrReport loads the configuration and prints its problems. It reports
// whether the configuration can be used.
func (c *configFlags) loadOrReport(env environment) (Config, bool, error) {
	cfg, problems, err := c.load(env.environ)
	if err != nil {
		return cfg, false, usageError{err.Error()}
	}
	for _, p := range problems {
		fmt.Fprintln(env.stderr, p)
	}
	return cfg, !fatal(problems), nil
}

// summary says in a few lines what a configuration does.
func summary(cfg Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  clients    %s\n  operators  %s\n", cfg.Listen, cfg.Admin.Listen)
	for _, name := range sortedKeys(cfg.Trackers) {
		t, role := cfg.Trackers[name], ""
		switch name {
		case cfg.Primary:
			role = ", primary"
		case cfg.Candidate:
			role = ", candidate"
		}
		fmt.Fprintf(&b, "  tracker    %s: %s (dialect %s%s)\n", name, redactURL(t.URL), t.Dialect, role)
	}
	fmt.Fprintf(&b, "  cache      %s\n", cacheSummary(cfg.Cache))
	if cfg.Candidate != "" {
		fmt.Fprintf(&b, "  state      %s\n", printable(cfg.State))
		for _, line := range tableLines(cfg.table()) {
			fmt.Fprintf(&b, "  rule       %s\n", line)
		}
	}
	fmt.Fprintf(&b, "  other paths pass through: %s\n", strings.Join(orNone(cfg.Passthrough), ", "))
	return b.String()
}

// cacheSummary says where and for how long flag types are cached.
func cacheSummary(c CacheConfig) string {
	if c.Scope == "off" {
		return "off"
	}
	where := printable(c.Redis.URL)
	if where == "" {
		where = strings.Join(c.Redis.Addrs, ", ")
	}
	return fmt.Sprintf("Redis %s, shared by %s, fresh for %s", where, c.Scope, c.TTL)
}

// orNone is a list for a reader, who may not see that it is empty.
func orNone(list []string) []string {
	if len(list) == 0 {
		return []string{"none"}
	}
	return list
}

// probe is one connection that portico check --probe tries.
type probe struct {
	name string
	try  func(ctx context.Context) (answer string, err error)
}

// runProbes tries all and prints how each went. It reports whether all went
// well.
func runProbes(ctx context.Context, w io.Writer, all []probe) bool {
	good := true
	for _, p := range all {
		answer, err := p.try(ctx)
		if err != nil {
			good, answer = false, "FAILED: "+err.Error()
		}
		fmt.Fprintf(w, "  probe      %s: %s\n", p.name, answer)
	}
	return good
}
