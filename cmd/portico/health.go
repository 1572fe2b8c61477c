package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// exitNotAsked is the exit status of portico health where no Portico has said whether it is ready.
const exitNotAsked = 2

// healthCommand is portico health.
func healthCommand(env environment) *cobra.Command {
	a, timeout := &adminClient{output: output{env: env}}, time.Duration(0)
	c := command("health", "ask a running Portico whether it is ready", func(ctx context.Context, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		_, err := a.get(ctx, "/readyz")
		refused, told := errors.AsType[refusal](err)
		status, text := exitOK, "ready"
		switch {
		case told && refused.status == http.StatusServiceUnavailable:
			status, text = exitFailed, "not ready: "+refused.text
		case err != nil:
			return exitError{exitNotAsked, err}
		}
		return exitError{status, a.value(map[string]any{"ready": err == nil, "reason": refused.text}, says("%s\n", text))}
	})
	c.Long = `Ask the admin listener of a running Portico whether clients should be sent there, as health checks of containers do.
No token is needed. A tracker that is down does not count.

Exit codes: 0 ready, 1 not ready, 2 it cannot be asked or the command line was wrong.`
	a.connectionFlags(c.Flags())
	a.output.flags(c.Flags())
	c.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "wait for so long, as a `DURATION`")
	return c
}
