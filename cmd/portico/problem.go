package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// origin is where a value was set: a place in a file, an environment variable
// or a flag.
type origin struct {
	source       string
	line, column int
}

// String is the origin as a compiler would print it.
func (o origin) String() string {
	if o.line == 0 {
		return o.source
	}
	return fmt.Sprintf("%s:%d:%d", o.source, o.line, o.column)
}

// Problem is one thing that is wrong, or doubtful, in a configuration.
type Problem struct {
	// Path is the key it is about, such as trackers.main.url.
	Path string
	// Message says what is wrong and what would be right.
	Message string
	// Warning marks what is doubtful but works.
	Warning bool

	origin origin
}

// String is one line: `file:line:col: message`, or the variable or flag in
// place of the file.
func (p Problem) String() string {
	var b strings.Builder
	if p.origin.source != "" {
		fmt.Fprintf(&b, "%s: ", p.origin)
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Path != "" {
		fmt.Fprintf(&b, "%s: ", p.Path)
	}
	b.WriteString(p.Message)
	return b.String()
}

// fatal reports whether any of the problems forbids to start.
func fatal(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// problemList collects what is wrong while a configuration is put together,
// together with the places that the values came from.
type problemList struct {
	problems []Problem
	origins  map[string]origin
}

// at records an error at a known place.
func (l *problemList) at(o origin, path, format string, args ...any) {
	l.problems = append(l.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), origin: o})
}

// errorf records an error about a key, at the place where it was set.
func (l *problemList) errorf(path, format string, args ...any) {
	l.at(l.origin(path), path, format, args...)
}

// warnf records a doubt about a key, at the place where it was set.
func (l *problemList) warnf(path, format string, args ...any) {
	l.problems = append(l.problems, Problem{
		Path: path, Message: fmt.Sprintf(format, args...), Warning: true, origin: l.origin(path),
	})
}

// join adds further findings, except on keys about which something was found
// already: their values are not what the operator wrote. Lists whose items depend on
// each other count as one key for that.
func (l *problemList) join(more []Problem) {
	known := map[string]bool{}
	for _, p := range l.problems {
		known[wholeList(p.Path)] = p.Path != ""
	}
	for _, p := range more {
		if !known[wholeList(p.Path)] {
			l.problems = append(l.problems, p)
		}
	}
}

// wholeList gives the path of the list of rules that a path leads into, or else the
// path itself.
func wholeList(path string) string {
	list, _, within := strings.Cut(path, "rules[")
	if within && (list == "" || list == "switchover.") {
		return list + "rules"
	}
	return path
}

// origin finds the place of a key, or of the nearest section around it: a
// missing key is reported where its section begins.
func (l *problemList) origin(path string) origin {
	for {
		if o, ok := l.origins[path]; ok {
			return o
		}
		i := strings.LastIndexAny(path, ".[") // a list from a variable has no place for each of its items
		if i < 0 {
			return l.origins[""]
		}
		path = path[:i]
	}
}

// sorted returns the problems in the order in which a reader meets them: the
// file from top to bottom, then variables and flags.
func (l *problemList) sorted() []Problem {
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(
			-cmp.Compare(min(a.origin.line, 1), min(b.origin.line, 1)),
			cmp.Compare(a.origin.source, b.origin.source),
			cmp.Compare(a.origin.line, b.origin.line),
			cmp.Compare(a.origin.column, b.origin.column),
			cmp.Compare(a.Path, b.Path),
		)
	})
	return l.problems
}

// nearest returns the candidate that a writer of word most likely meant, or ""
// when none is near.
func nearest(word string, candidates []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := editDistance(word, c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes, which is enough for keys.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
