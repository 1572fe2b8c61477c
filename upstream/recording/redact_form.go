package recording

import (
	"net/url"
	"regexp"
	"strings"
)

var (
	// plainParameter are names that are names of something. Others may be a text in a form that was not recognised.
	plainParameter = regexp.MustCompile(`^[\pL\pN_.\-\[\] ]*$`)
	// pathCredential finds what might be credentials that a client wrote into the path by mistake.
	pathCredential = regexp.MustCompile(`(?i)([^&;/?#=]+?)(=|%3D)([^&;/?#]+)`)
	escapedBraces  = regexp.MustCompile(`%7B%7B((?:(?:caller|login|address)-(?:\d{1,7}|x)))%7D%7D`)
)

// hiddenText stands for what could not be read.
const hiddenText = "unreadable"

// withoutHost cuts off what names a host before a path.
func withoutHost(target string) string {
	if _, rest, found := strings.Cut(target, "://"); found && !strings.HasPrefix(target, "/") {
		_, path, _ := strings.Cut(rest, "/")
		return "/" + path
	}
	return target
}

// target redacts path and query.
func (s *sheet) target(target string) string {
	target = withoutHost(target)
	if isPage(target) {
		return s.pageTarget(target)
	}
	path, query, found := strings.Cut(target, "?")
	path = pathCredential.ReplaceAllStringFunc(path, func(piece string) string {
		parts := pathCredential.FindStringSubmatch(piece)
		if hidden, secret := s.hide(unescaped(parts[1]), unescaped(parts[3])); secret {
			return parts[1] + parts[2] + hidden
		}
		return piece
	})
	if !found {
		return path
	}
	query, _ = s.pairs(query)
	return path + "?" + query
}

// unescaped takes the escapes off that are some; a stray percent sign stays (recorded as proto.bad_percent_query).
func unescaped(text string) string {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := url.PathUnescape(text[i : i+3]); err == nil {
				plain.WriteString(c)
				i += 2
				continue
			}
		}
		plain.WriteByte(text[i])
	}
	return plain.String()
}

// pairs redacts a query, or a form that is written like one; good tells that all of it could be read.
func (s *sheet) pairs(text string) (clean string, good bool) {
	var out strings.Builder
	good = true
	for len(text) > 0 {
		end := strings.IndexAny(text, "&;")
		piece, separator := text, ""
		if end >= 0 {
			piece, separator = text[:end], text[end:end+1]
		}
		text = text[len(piece)+len(separator):]
		pair, fine := s.pair(piece)
		good = good && fine
		out.WriteString(pair + separator)
	}
	return out.String(), good
}

// pair redacts one name with its value.
func (s *sheet) pair(piece string) (clean string, good bool) {
	escapedName, escapedValue, valued := strings.Cut(piece, "=")
	name := unescaped(strings.ReplaceAll(escapedName, "+", " "))
	value := unescaped(strings.ReplaceAll(escapedValue, "+", " "))
	if !plainParameter.MatchString(name) {
		s.spoilt(unreadable)
		return hiddenText, false
	}
	if !valued {
		if s.isShort(name) {
			return s.caller(name), true
		}
		return piece, true
	}
	if hidden, secret := s.hide(name, value); secret {
		return escapedName + "=" + hidden, true
	}
	if plainName(name) == "data" && len(escapedValue) > s.redactor.maxData {
		s.spoilt(payloadGone)
		return escapedName + "=" + elide(unescaped(escapedValue)), true
	}
	if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		return s.embedded(escapedName, escapedValue, trimmed)
	}
	return piece, true
}

// embedded redacts JSON in a parameter, as the tracker's JSON-RPC takes it.
func (s *sheet) embedded(escapedName, escapedValue, text string) (clean string, good bool) {
	inner, ok := s.json([]byte(text))
	switch {
	case !ok:
		s.spoilt(unreadable)
		return escapedName + "=" + hiddenText, false
	case string(inner) == text:
		return escapedName + "=" + escapedValue, true
	}
	return escapedName + "=" + escapedBraces.ReplaceAllString(url.QueryEscape(string(inner)), "{{$1}}"), true
}
