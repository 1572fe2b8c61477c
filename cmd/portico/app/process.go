package app

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"go.opentelemetry.io/otel"

	"portico/cmd/portico/config"
	"portico/proxy"
)

// NewLogger returns the program's logger and its level, which may be changed. Callers keep secrets out of the lines, for example with
// config.RedactURL.
func NewLogger(w io.Writer, cfg config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(cfg.Level)) // config has checked it
	options := &slog.HandlerOptions{Level: level}
	return slog.New(proxy.LogHandler(w, func(w io.Writer) slog.Handler {
		if cfg.Format == "text" {
			return slog.NewTextHandler(w, options)
		}
		return slog.NewJSONHandler(w, options)
	})), level
}

// QuietLibraries discards what the standard library and the library of traces log by themselves: net/http logs parts of responses.
func QuietLibraries() {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	log.SetOutput(io.Discard)
}

// UntilSignal returns a context that ends at the first SIGTERM or interrupt. The second one ends the process at once. The caller calls
// stop once; from then on signals have their usual effect.
func UntilSignal(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals // also at its end
		cancel()
		if _, again := <-signals; again {
			os.Exit(1)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
	}
}

// Version is that of the next release. The Makefile and the packages take it from here.
const Version = "0.1.0"

// ThisVersion describes this build.
func ThisVersion() string {
	info, _ := debug.ReadBuildInfo()
	return BuildVersion(info)
}

// BuildVersion describes a build: its version, the commit if it is known, and the version of Go.
func BuildVersion(info *debug.BuildInfo) string {
	if info == nil {
		return Version
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = ", commit " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			dirty = map[string]string{"true": " with local changes"}[s.Value]
		}
	}
	return Version + commit + dirty + ", " + info.GoVersion
}
