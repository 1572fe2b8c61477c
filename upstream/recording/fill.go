package recording

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MissingError says for which placeholders nothing is known.
type MissingError struct{ Names []string }

// Error implements error.
func (e *MissingError) Error() string { return "nothing is known for " + strings.Join(e.Names, ", ") }

// Fill makes the request with values in place of its placeholders, each in the spelling of the place where it stands.
// values are by name, without braces. Only placeholders in Callers are filled: others are text. Errors are *MissingError, or
// say which value cannot stand in a header.
func (e Exchange) Fill(values map[string]string) (Request, error) {
	var missing []string
	for _, name := range e.Callers {
		if values[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return Request{}, &MissingError{Names: missing}
	}
	filled := e.Request
	if len(e.Callers) == 0 {
		return filled, nil
	}
	f := filler{names: e.Callers, values: values}
	filled.Path = f.target(filled.Path)
	filled.Headers = map[string]string{}
	for name, value := range e.Request.Headers {
		filled.Headers[name] = f.text(value, plain)
		if strings.ContainsAny(filled.Headers[name], "\r\n") {
			return Request{}, fmt.Errorf("the value for the header %s has more than one line", name)
		}
	}
	if filled.Body != nil {
		filled.Body = f.body(headerOf(filled.Headers, "Content-Type"), filled.Body)
	}
	return filled, nil
}

// headerOf finds a header whatever the case of its name.
func headerOf(headers map[string]string, name string) string {
	for each, value := range headers {
		if http.CanonicalHeaderKey(each) == name {
			return value
		}
	}
	return ""
}

// filler puts values in place of placeholders.
type filler struct {
	names  []string
	values map[string]string
}

// text fills a text in which values are spelt in a certain way.
func (f filler) text(text string, spell func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "{}")
		if !slices.Contains(f.names, name) {
			return found
		}
		return spell(f.values[name])
	})
}

// target fills path and query. Some parameters are JSON themselves.
func (f filler) target(target string) string {
	path, query, found := strings.Cut(target, "?")
	path = f.text(path, url.QueryEscape)
	if !found {
		return path
	}
	var out strings.Builder
	for piece := range strings.SplitAfterSeq(query, "&") {
		spell := url.QueryEscape
		_, value, _ := strings.Cut(piece, "=")
		if value = strings.TrimSpace(unescaped(value)); strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") && !placeholder.MatchString(value[:min(len(value), 20)]) {
			spell = func(text string) string { return url.QueryEscape(insideJSON(text)) }
		}
		out.WriteString(f.text(piece, spell))
	}
	return path + "?" + out.String()
}

// body fills a body by what it is.
func (f filler) body(contentType string, body []byte) []byte {
	kind, _, _ := mime.ParseMediaType(contentType)
	spell := plain
	switch {
	case kind == "multipart/form-data":
	case isJSON(body):
		spell = insideJSON
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		spell = insideXML
	case kind == "application/x-www-form-urlencoded":
		spell = url.QueryEscape
	}
	return []byte(f.text(string(body), spell))
}

func isJSON(text []byte) bool {
	_, ok := walkJSON(text, func(place, jsontext.Value) (string, bool) { return "", false })
	return ok
}

func plain(text string) string { return text }

func insideJSON(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text) // what is not UTF-8 is replaced
	return string(quoted[1 : len(quoted)-1])
}

func insideXML(text string) string {
	var marked bytes.Buffer
	_ = xml.EscapeText(&marked, []byte(text)) // a Buffer takes everything
	return marked.String()
}
