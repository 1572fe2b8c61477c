package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// trackers are the names of the one that answers and of the other one.
type trackers struct{ Answered, Other string }

// command is something to paste into a shell.
type command struct {
	ID, Title, Text string
}

// commands are those that make the request of a sample again: of the facade, and of both trackers, as far as their
// addresses are known. Only reads are offered.
func (o CanaryOptions) commands(prefix, method, target string, between trackers) []command {
	if method != http.MethodGet || !strings.HasPrefix(target, "/") {
		return nil
	}
	var all []command
	add := func(title, base string) {
		if base != "" && !slices.ContainsFunc(all, func(c command) bool { return c.Title == title }) {
			all = append(all, command{ID: fmt.Sprintf("%s-%d", prefix, len(all)+1), Title: title, Text: curl(base, target)})
		}
	}
	add("Through Portico", o.Facade)
	add(between.Answered, o.Trackers[between.Answered])
	add(between.Other, o.Trackers[between.Other])
	return all
}

// curl writes a read with the key left open.
func curl(base, target string) string {
	return "curl -s -H \"X-BUGZILLA-API-KEY: $API_KEY\" " + quoteShell(strings.TrimSuffix(base, "/")+target)
}

// quoteShell writes a text so that a shell takes it as it is.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
