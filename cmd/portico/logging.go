package main

import (
	"io"
	"log"
	"log/slog"

	"go.opentelemetry.io/otel"
)

// newLogger returns the program's logger. What is written is decided here;
// that no secret is in it is decided where the lines are made, for which
// redactURL and upstream.Caller are the tools.
func newLogger(w io.Writer, cfg LogConfig) *slog.Logger {
	return newLoggerAt(w, cfg, logLevel(cfg.Level))
}

// newLoggerAt is newLogger with a level that may change.
func newLoggerAt(w io.Writer, cfg LogConfig, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// logLevel turns a level that Load has checked into slog's.
func logLevel(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// quietLibraries takes over the standard library's own log. net/http writes
// there what a tracker sent out of turn, which may be anybody's data, so only
// the fact is told. The libraries of traces have a log of their own.
func quietLibraries(logger *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { logger.Debug("a library of traces complained; its words are not shown") }))
	log.SetFlags(0)
	log.SetOutput(libraryLog{logger})
}

// libraryLog is an io.Writer for the standard log package.
type libraryLog struct{ logger *slog.Logger }

// Write implements io.Writer.
func (l libraryLog) Write(p []byte) (int, error) {
	l.logger.Debug("a library complained; its words are not shown", "bytes", len(p))
	return len(p), nil
}
