package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// origin is where a value was set: a place in a file, an environment variable or a flag. Lines and columns count from 1.
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

// Problem is one mistake or doubtful value in a configuration.
type Problem struct {
	// Path is the key it is about, such as trackers.main.url.
	Path string
	// Message says what is wrong and what would be right.
	Message string
	// Warning marks what is doubtful but works.
	Warning bool

	origin origin
}

// String is one line: `file:line:column: path: message`, or the variable or flag in place of the file.
func (p Problem) String() string {
	line := p.origin.String()
	if p.Warning {
		line += ": warning"
	}
	if p.Path != "" {
		line += ": " + p.Path
	}
	return strings.TrimPrefix(line+": "+p.Message, ": ") // what a program has set has no origin
}

// Fatal reports whether any of the problems is not a warning.
func Fatal(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// problems collects problems, together with the places that the values came from.
type problems struct {
	list    []Problem
	origins map[string]origin
}

// at records a mistake at a known place.
func (p *problems) at(o origin, path, format string, args ...any) {
	p.list = append(p.list, Problem{Path: path, Message: fmt.Sprintf(format, args...), origin: o})
}

// errorf records a mistake about a key, at the place where it was set.
func (p *problems) errorf(path, format string, args ...any) {
	p.at(p.origin(path), path, format, args...)
}

// warnf records a doubt about a key, at the place where it was set.
func (p *problems) warnf(path, format string, args ...any) {
	p.errorf(path, format, args...)
	p.list[len(p.list)-1].Warning = true
}

// origin finds the place of a key, or of the nearest section around it: a missing key is reported where its section begins.
func (p *problems) origin(path string) origin {
	for {
		o, known := p.origins[path]
		if known || path == "" {
			return o
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))] // a list from a variable has no place for each of its items
	}
}

// sorted returns the problems in the order in which a reader meets them: the file from top to bottom, then variables and flags.
// It adds further ones, except on keys that have one already: their values are not what the operator wrote. Rules depend on each
// other and count as one key for that.
func (p *problems) sorted(further []Problem) []Problem {
	key := func(p Problem) string {
		list, _, _ := strings.Cut(p.Path, "rules[")
		return list
	}
	p.list = append(p.list, slices.DeleteFunc(further, func(later Problem) bool {
		return slices.ContainsFunc(p.list, func(known Problem) bool { return key(known) == key(later) })
	})...)
	place := func(p Problem) string {
		o := p.origin
		return fmt.Sprintf("%t %s %9d %9d %s", o.line == 0, o.source, o.line, o.column, p.Path)
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return strings.Compare(place(a), place(b)) })
	return slices.Compact(p.list)
}

// DidYouMean is the end of a message about an unknown word: the candidate that is most like it, or nothing. What differs between
// their common beginning and their common end must be at most a third of the word. Letters that only the candidate has may be
// more.
func DidYouMean(word string, candidates []string) (hint string) {
	limit, least := max(2, len(word)/3), math.MaxInt
	for _, candidate := range candidates {
		a, b := strings.ToLower(word), strings.ToLower(candidate)
		for a != "" && b != "" && a[0] == b[0] {
			a, b = a[1:], b[1:]
		}
		for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
			a, b = a[:len(a)-1], b[:len(b)-1]
		}
		near := candidate != "" && (max(len(a), len(b)) <= limit || a == "" && len(word) > 3)
		if unlike := len(a + b); near && unlike < least {
			hint, least = fmt.Sprintf("; did you mean %q?", candidate), unlike
		}
	}
	return hint
}
