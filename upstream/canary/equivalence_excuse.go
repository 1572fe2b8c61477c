package canary

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// at gives the rules that apply to a path.
func (r Rules) at(operation mapping.Operation, path *stablePath) []*rule {
	if !path.known {
		path.known = true
		for _, rule := range r.list {
			if !rule.expired && (rule.Operation == "" || rule.Operation == operation) && rule.path.MatchString(path.text) {
				path.rules = append(path.rules, rule)
			}
		}
	}
	return path.rules
}

// first gives the first rule of a type that applies to a path, nil if none does.
func (r Rules) first(operation mapping.Operation, path *stablePath, kind EquivalenceType) *rule {
	if len(r.list) == 0 {
		return nil
	}
	for _, rule := range r.at(operation, path) {
		if rule.Type == kind {
			return rule
		}
	}
	return nil
}

// excuse gives the name of the first rule that excuses a difference, empty if none does.
func (r Rules) excuse(operation mapping.Operation, path *stablePath, d Difference) string {
	if len(r.list) == 0 {
		return ""
	}
	for _, rule := range r.at(operation, path) {
		if rule.excuses(d) {
			return rule.Name
		}
	}
	return ""
}

// excuses tells whether a difference is of the one kind that the rule is for, and
// within its bounds.
func (r *rule) excuses(d Difference) bool {
	switch r.Type {
	case Set:
		return d.Class == ClassOrder
	case IntAsBool:
		return d.Class == ClassType && sameTruth(d.Want, d.Have)
	case TimeWithin:
		apart, ok := times(unquoted(d.Want), unquoted(d.Have))
		return ok && d.Class == ClassTime && apart <= r.Within
	case IDMap:
		return d.Class == ClassValue && r.sameID(d.Want, d.Have)
	}
	return d.isTexts() && r.sameText(string(unquoted(d.Want)), string(unquoted(d.Have)))
}

// isTexts tells whether the difference is between two texts.
func (d Difference) isTexts() bool {
	switch d.Class {
	case ClassValue, ClassMessage, ClassHeader:
		return d.Want.Kind() == '"' && d.Have.Kind() == '"'
	}
	return false
}

func (r *rule) sameText(want, have string) bool {
	switch r.Type {
	case Regex:
		first, second := r.pattern.FindStringSubmatch(want), r.pattern.FindStringSubmatch(have)
		return first != nil && second != nil && slices.Equal(first[1:], second[1:])
	case URLHost:
		first, ok := behindHost(want)
		second, also := behindHost(have)
		return ok && also && first == second
	}
	return false
}

// behindHost gives what follows the host of an absolute URL.
func behindHost(text string) (string, bool) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return rest[end:], end > 0 && !strings.ContainsAny(rest[:end], "@ \t\r\n")
}

// sameTruth tells whether one is 0 or 1 and the other the boolean for it.
func sameTruth(want, have jsontext.Value) bool {
	number, truth := string(want), string(have)
	if want.Kind() != '0' {
		number, truth = truth, number
	}
	return number == "0" && truth == "false" || number == "1" && truth == "true"
}

// sameID tells whether have is what want is on the other side. Both are numbers, or
// both texts.
func (r *rule) sameID(want, have jsontext.Value) bool {
	if want.Kind() != have.Kind() {
		return false
	}
	first, err := strconv.ParseInt(string(unquotedText(want)), 10, 64)
	if err != nil {
		return false
	}
	other, ok := r.mapped(first)
	return ok && strconv.FormatInt(other, 10) == string(unquotedText(have))
}

// unquotedText takes the quotes off a string and leaves any other value as it is.
func unquotedText(raw jsontext.Value) []byte {
	if raw.Kind() == '"' {
		return unquoted(raw)
	}
	return raw
}

// mapped gives the id that the other side has for an id.
func (r *rule) mapped(id int64) (int64, bool) {
	if other, ok := r.Table[id]; ok {
		return other, true
	}
	if r.Offset == 0 || r.Offset > 0 && id > math.MaxInt64-r.Offset || r.Offset < 0 && id < math.MinInt64-r.Offset {
		return 0, false
	}
	return id + r.Offset, true
}
