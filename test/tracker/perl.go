package tracker

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// object is a JSON object or a set of parameters. Request values are nil, bool, int64, float64, string, []any and object.
type object = map[string]any

// truth is the truth of a value as the real server's language sees it (tracker-behaviour.md section 3: `"false"`, `[]` and `{}` are true).
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != "" && v != "0"
	}
	return true
}

// text turns a value into a string as the real server does: numbers in their shortest form, references as ARRAY(0x…).
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "1"
		}
		return "0"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return numberText(v)
	case string:
		return v
	case []any:
		return "ARRAY" + address(fmt.Sprintf("%p", v))
	case object:
		return "HASH" + address(fmt.Sprintf("%p", v))
	}
	return fmt.Sprint(v)
}

// address writes where a reference points to with the twelve digits that it has on the real server.
func address(pointer string) string {
	pointer = strings.TrimPrefix(pointer, "0x")
	return "(0x55" + strings.Repeat("0", max(0, 10-len(pointer))) + pointer[max(0, len(pointer)-10):] + ")"
}

func numberText(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 15, 64)
}

// scalar tells whether a value is no reference; JSON booleans are references there (tracker-behaviour.md section 7: a boolean among ids is code 58).
func scalar(v any) bool {
	switch v.(type) {
	case []any, object, bool:
		return false
	}
	return true
}

// trim cuts white space from both ends.
func trim(s string) string { return strings.TrimFunc(s, unicode.IsSpace) }

// clean turns each run of control characters into one blank and trims (tracker-behaviour.md section 6, file_name and content_type).
func clean(s string) string {
	var b strings.Builder
	control := false
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			if !control {
				b.WriteByte(' ')
			}
			control = true
			continue
		}
		control = false
		b.WriteRune(r)
	}
	return trim(b.String())
}

// natural reads a string of digits. A number too large for an id is told by ok with a value that no row has.
func natural(s string) (n int, ok bool) {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n64, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n64 > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return int(n64), true
}

// latin1 reads bytes as ISO 8859-1.
func latin1(b string) string {
	var s strings.Builder
	for i := range len(b) {
		s.WriteRune(rune(b[i]))
	}
	return s.String()
}

// cut keeps the first n characters, as the database does with a column that is too short.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
