package app

import (
	"io"
	"log"
	"log/slog"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/otel"

	"portico/cmd/portico/config"
)

// NewLogger returns the program's logger. Callers keep secrets out of the lines, for example with config.RedactURL.
func NewLogger(w io.Writer, cfg config.Log) *slog.Logger {
	return newLogger(w, cfg, logLevel(cfg))
}

func newLogger(w io.Writer, cfg config.Log, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// logLevel parses a level that config has checked.
func logLevel(cfg config.Log) (level slog.Level) {
	_ = level.UnmarshalText([]byte(cfg.Level))
	return level
}

// QuietLibraries replaces the output of the standard library's log and of the library of traces by lines at level debug that say only
// that there was one: net/http logs parts of responses there.
func QuietLibraries(logger *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { logger.Debug("a library of traces complained; its words are not shown") }))
	log.SetFlags(0)
	log.SetOutput(libraryLog{logger})
}

// libraryLog is the output of the standard library's log.
type libraryLog struct{ logger *slog.Logger }

// Write implements io.Writer.
func (l libraryLog) Write(p []byte) (int, error) {
	l.logger.Debug("a library complained; its words are not shown", "bytes", len(p))
	return len(p), nil
}

// Version is that of the next release. The Makefile and the packages take it from here.
const Version = "0.1.0"

// version describes this build.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return BuildVersion(info)
}

// BuildVersion describes a build: its version, the commit if it is known, and the version of Go.
func BuildVersion(info *debug.BuildInfo) string {
	parts := []string{Version}
	if info == nil {
		return Version
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		dirty := ""
		if settings["vcs.modified"] == "true" {
			dirty = " with local changes"
		}
		parts = append(parts, "commit "+commit[:min(12, len(commit))]+dirty)
	}
	return strings.Join(append(parts, info.GoVersion), ", ")
}
