package canary

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// How segments of a path are written: .name, [id], ["odd name"].
const (
	nameSegment    = `\.[^.\[\]"]+`
	bracketSegment = `\[(?:"[^"]*"|[^"\]]*)\]`
)

var (
	segmentForm = regexp.MustCompile(`^(?:` + nameSegment + `|` + bracketSegment + `)`)
	beginnings  = regexp.MustCompile(`^(?:\$|header|[a-z*]+)`)
)

var errNoPath = errors.New("a rule needs a path such as $.attachments[*].last_change_time; ** stands for all")

// compilePath makes a regular expression of a pattern for paths. In it * stands for
// any text within one segment, and ** for any number of segments.
func compilePath(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, errNoPath
	}
	begin := beginnings.FindString(pattern)
	if begin == "" {
		return nil, fmt.Errorf("the path %q begins with neither $ nor header nor **", pattern)
	}
	var expression strings.Builder
	expression.WriteString(`\A` + beginningOf(begin))
	for rest := pattern[len(begin):]; rest != ""; {
		segment := segmentForm.FindString(rest)
		if segment == "" {
			return nil, fmt.Errorf("the path %q is not understood from %q on", pattern, rest)
		}
		expression.WriteString(segmentPattern(segment))
		rest = rest[len(segment):]
	}
	return regexp.Compile(expression.String() + `\z`)
}

func beginningOf(text string) string {
	if text == "**" {
		return `.*`
	}
	return strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `[^.\[]*`)
}

func segmentPattern(segment string) string {
	switch segment {
	case ".**", "[**]":
		return `(?:` + nameSegment + `|` + bracketSegment + `)*`
	case ".*":
		return `(?:` + nameSegment + `|\["[^"]*"\])`
	case "[*]":
		return bracketSegment
	}
	any := `[^.\[\]"]*`
	if segment[0] == '[' {
		any = `[^"\]]*`
	}
	return strings.ReplaceAll(regexp.QuoteMeta(segment), `\*`, any)
}
