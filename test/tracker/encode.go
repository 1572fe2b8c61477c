package tracker

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendJSON writes an answer value (nil, bool, int, string, []any, object). The order of members is that of a Go map, so
// it is random on every answer, as on the real server (tracker-behaviour.md). With indent it is sorted and set out over lines.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case string:
		return appendText(b, v)
	case []any:
		return appendArray(b, v)
	case object:
		return appendObject(b, v)
	}
	return appendText(b, fmt.Sprint(v))
}

func appendArray(b []byte, list []any) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, v)
	}
	return append(b, ']')
}

func appendObject(b []byte, o object) []byte {
	b = append(b, '{')
	first := true
	for k, v := range o {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, k), ':')
		b = appendJSON(b, v)
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		if k := strings.IndexByte("\"\\\b\f\n\r\t", c); k >= 0 {
			b = append(b, '\\', "\"\\bfnrt"[k])
		} else {
			b = fmt.Appendf(b, "\\u%04x", c)
		}
	}
	return append(append(b, s[start:]...), '"')
}

// readable turns bytes into text: UTF-8 where they are that, ISO 8859-1 otherwise (tracker-behaviour.md section 1, Request bodies).
func readable(b string) string {
	if utf8.ValidString(b) {
		return b
	}
	return latin1(b)
}
