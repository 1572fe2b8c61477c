package recording

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fill makes the request with values in place of its placeholders, each in the spelling of the place where it stands.
// values are by name, without braces. Only placeholders in Callers are filled: others are text. Errors say which values are
// missing, or that a line break would make another request of it.
func (e Exchange) Fill(values map[string]string) (Request, error) {
	missing := slices.DeleteFunc(slices.Clone(e.Callers), func(name string) bool { return values[name] != "" })
	if len(missing) > 0 {
		return Request{}, errors.New("there is no value for " + strings.Join(missing, ", ") + "; use --key or --keys")
	}
	filled := e.Request
	fill := edit(func(_, text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			if name := strings.Trim(found, "{}"); slices.Contains(e.Callers, name) {
				return values[name]
			}
			return found
		})
	})
	filled.Path, filled.Headers = fill.target(filled.Path), map[string]string{}
	for name, value := range e.Request.Headers {
		filled.Headers[name] = fill("", value)
	}
	if strings.ContainsAny(fmt.Sprint(filled.Method, filled.Path, filled.Headers), "\r\n") {
		return Request{}, errors.New("it has a line break in its method, its path, or a header")
	}
	body, understood := fill.body(filled.Headers, filled.Body)
	if !understood { // older recordings have forms of several parts
		body = []byte(fill("", string(filled.Body)))
	}
	filled.Body = body
	return filled, nil
}
