package main

import (
	"context"
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
)

// versionCommand is portico version.
func versionCommand() command {
	return command{
		name:    "version",
		summary: "print the version of this program",
		details: "Print the version, the commit and the Go version that this program was built from.",
		prepare: func(*flag.FlagSet) runner {
			return func(_ context.Context, env environment, args []string) (int, error) {
				if err := noArguments(args); err != nil {
					return exitUsage, err
				}
				info, _ := debug.ReadBuildInfo()
				fmt.Fprintf(env.stdout, "portico %s\n", buildVersion(info))
				return exitOK, nil
			}
		},
	}
}

// buildVersion describes a build: version, commit where the build knows it, Go
// version. A build without module information has neither of the first two.
func buildVersion(info *debug.BuildInfo) string {
	if info == nil {
		return "unknown"
	}
	parts := []string{info.Main.Version}
	if info.Main.Version == "" || info.Main.Version == "(devel)" {
		parts[0] = "devel"
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
