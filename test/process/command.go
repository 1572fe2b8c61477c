package process

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"testing"
)

// Run runs a command of Portico that ends by itself. It returns the exit status, what was printed, and that along with errors.
func Run(t testing.TB, args ...string) (status int, printed, all string) {
	t.Helper()
	var out bytes.Buffer
	var both Output
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), Portico(t), args...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, &both), &both
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Error(err)
		return -1, "", ""
	}
	return cmd.ProcessState.ExitCode(), out.String(), both.String()
}
