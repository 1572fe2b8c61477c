package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"portico/proxy"
)

// lateLog lets nobody write a line before it is told that the answer is there.
type lateLog struct {
	slog.Handler
	t        *testing.T
	answered chan struct{}
}

func (l lateLog) Handle(context.Context, slog.Record) error {
	select {
	case <-l.answered:
	case <-time.After(20 * time.Second):
		l.t.Error("the log line came before the answer")
	}
	return nil
}

func TestAnswersLeaveBeforeTheirLogLine(t *testing.T) {
	late := lateLog{Handler: slog.DiscardHandler, t: t, answered: make(chan struct{})}
	base := serve(t, proxy.Options{Logger: slog.New(alwaysOn{late})})
	ask(t, http.MethodGet, base+"/rest/bug/1/attachment", "").wantStatus(t, http.StatusOK)
	close(late.answered)
}

// alwaysOn takes lines of every level.
type alwaysOn struct{ lateLog }

func (alwaysOn) Enabled(context.Context, slog.Level) bool { return true }
