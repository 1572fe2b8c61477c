package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"portico/proxy"
)

// lateLog holds each line back until the test has its response.
type lateLog struct {
	slog.Handler
	t         *testing.T
	responded chan struct{}
}

func (l lateLog) Handle(context.Context, slog.Record) error {
	select {
	case <-l.responded:
	case <-time.After(time.Minute):
		l.t.Error("the log line came before the response")
	}
	return nil
}

func TestResponsesLeaveBeforeTheirLogLine(t *testing.T) {
	late := lateLog{Handler: slog.DiscardHandler, t: t, responded: make(chan struct{})}
	base := serve(t, proxy.Options{Logger: slog.New(alwaysOn{late})})
	ask(t, http.MethodGet, base+"/rest/bug/1/attachment", "").wantStatus(t, http.StatusOK)
	close(late.responded)
}

// alwaysOn takes lines of every level.
type alwaysOn struct{ lateLog }

func (alwaysOn) Enabled(context.Context, slog.Level) bool { return true }
