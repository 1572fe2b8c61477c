package proxy_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/mapping"
	"portico/proxy"
)

// writes keeps each write of a log that is not empty.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*w = append(*w, string(p))
	}
	return len(p), nil
}

// Lines that come fast share a write. None is late, and none comes after what was logged later.
func TestLinesOfRequestsShareWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log writes
		logger := slog.New(proxy.LogHandler(&log, func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }))
		tracker := &fakeTracker{}
		server, err := proxy.New(proxy.Options{Tracker: tracker, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		get := func(id string) {
			request := httptest.NewRequest(http.MethodGet, "/rest/flag_type/P", http.NoBody)
			request.Header.Set("X-Request-Id", id)
			server.ServeHTTP(httptest.NewRecorder(), request)
		}
		want := func(what string, lines ...string) {
			t.Helper()
			synctest.Wait()
			got := slices.Collect(strings.Lines(strings.Join(log, "")))
			if len(log) != 1 || len(got) != len(lines) {
				t.Fatalf("%s: %d writes of %q, want one of %d lines", what, len(log), got, len(lines))
			}
			for i, part := range lines {
				if !strings.Contains(got[i], part) {
					t.Errorf("%s: line %d is %q, want %s", what, i+1, got[i], part)
				}
			}
			log = nil
		}
		get("alone")
		time.Sleep(5 * time.Millisecond)
		want("of one request", "id=alone ")
		get("a")
		get("b")
		time.Sleep(5 * time.Millisecond)
		want("after 5 ms", "id=a ", "id=b ")
		get("c")
		logger.Info("something else")
		want("before another line", "id=c ", "something else")
		get("d")
		tracker.flagTypes = failing(&mapping.Error{Code: mapping.CodeBadGateway, Status: http.StatusBadGateway, Message: "m"}).flagTypes
		get("e")
		want("of a failed request", "id=d ", "id=e ")
	})
}

// lateLog takes lines of every level, and holds each back until the test has its response.
type lateLog struct {
	slog.Handler
	t         *testing.T
	responded chan struct{}
}

func (lateLog) Enabled(context.Context, slog.Level) bool { return true }

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
	base := serve(t, proxy.Options{Logger: slog.New(late)})
	ask(t, http.MethodGet, base+"/rest/bug/1/attachment", "").wantStatus(t, http.StatusOK)
	close(late.responded)
}
