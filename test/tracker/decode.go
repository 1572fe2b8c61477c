package tracker

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// maxNesting is the deepest JSON that is read (tracker-behaviour.md section 1: nesting over 512 is a syntax error).
const maxNesting = 512

var errSyntax = errors.New("malformed JSON")

// escape matches an escape sequence in JSON. Its group is half a surrogate pair without the other half.
var escape = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u([dD][89a-fA-F]..)|\\.`)

// decodeJSON reads one JSON text as the real parser does (tracker-behaviour.md section 1, Request bodies): the last of duplicate members wins,
// integers beyond 64 bits become floats, and lone surrogates are errors.
func decodeJSON(s string) (any, error) {
	if !json.Valid([]byte(s)) {
		return nil, errSyntax
	}
	for _, m := range escape.FindAllStringSubmatch(s, -1) {
		if m[1] != "" {
			return nil, errSyntax
		}
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errSyntax
	}
	return requestValue(v, 0)
}

// requestValue turns numbers into int64 or float64 and checks the nesting.
func requestValue(v any, depth int) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, _ := strconv.ParseFloat(v.String(), 64) // what is too large is infinite
		return f, nil
	case []any:
		if depth == maxNesting {
			return nil, errSyntax
		}
		for i := range v {
			if v[i], err = requestValue(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case object:
		if depth == maxNesting {
			return nil, errSyntax
		}
		for k := range v {
			if v[k], err = requestValue(v[k], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
