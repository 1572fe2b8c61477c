package tracker

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// maxBody bounds what is read of a request; far above what any recorded request sends.
const maxBody = 1 << 29

// field is one named form or query parameter with its values in order.
type field struct {
	name   string
	values []any
}

// parseForm reads a query string or a form body: pairs are split at & and ;, and text without any = is a list of keywords
// (tracker-behaviour.md section 1: the set_keywords artefact).
func parseForm(raw string) []field {
	if raw == "" {
		return nil
	}
	var fields []field
	if !strings.Contains(raw, "=") {
		for _, word := range strings.FieldsFunc(raw, func(r rune) bool { return r == '+' || r == ' ' }) {
			fields = addField(fields, "keywords", readable(unescape(word)))
		}
		return fields
	}
	for _, pair := range strings.FieldsFunc(raw, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		fields = addField(fields, readable(unescape(name)), readable(unescape(value)))
	}
	return fields
}

func addField(fields []field, name, value string) []field {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		fields[i].values = append(fields[i].values, value)
		return fields
	}
	return append(fields, field{name: name, values: []any{value}})
}

// unescape undoes + and %XX; an invalid escape stays as it is.
func unescape(s string) string {
	s = strings.ReplaceAll(s, "+", " ")
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0 {
			b.WriteByte(byte(unhex(s[i+1])<<4 | unhex(s[i+2])))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// joined are fields as parameters: one value is that, several are a list.
func joined(fields []field) object {
	params := object{}
	for _, f := range fields {
		if len(f.values) == 1 {
			params[f.name] = f.values[0]
		} else {
			params[f.name] = f.values
		}
	}
	return params
}

// body is what a POST or PUT carries: form fields, or the text of JSON.
type body struct {
	fields []field
	json   string
}

// readBody reads the request's body by its content type. A chunked body is lost (tracker-behaviour.md section 1, Request bodies).
func readBody(r *http.Request) (body, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil || len(r.TransferEncoding) > 0 {
		return body{}, err
	}
	kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind == "multipart/form-data":
		return body{fields: parseMultipart(raw, options["boundary"])}, nil
	case kind == "application/x-www-form-urlencoded", r.Header.Get("Content-Type") == "":
		return body{fields: parseForm(string(raw))}, nil
	}
	return body{json: string(raw)}, nil
}

func parseMultipart(raw []byte, boundary string) []field {
	var fields []field
	parts := multipart.NewReader(bytes.NewReader(raw), boundary)
	for {
		part, err := parts.NextPart()
		if err != nil {
			return fields
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return fields
		}
		fields = addField(fields, readable(part.FormName()), readable(string(value)))
	}
}

// errNotObject is JSON that parses but is no object.
var errNotObject = errors.New("the JSON is no object")

// parameters puts together what the path, the query and the body say (tracker-behaviour.md section 1, Request bodies and parameters).
// On GET, lists of the path and the query are joined; otherwise the body replaces the path and the query replaces both.
func parameters(r *http.Request, path object) (object, error) {
	query := parseForm(r.URL.RawQuery)
	if r.Method == http.MethodGet {
		return withPath(joined(query), path), nil
	}
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	params := withPath(joined(b.fields), path)
	members, err := b.members()
	if err != nil {
		return nil, err
	}
	maps.Copy(params, members)
	for _, f := range query {
		params[f.name] = f.values[0]
	}
	return params, nil
}

// members decodes the JSON of a body; none, 0 and null count as an empty object.
func (b body) members() (object, error) {
	if b.json == "" || b.json == "0" {
		return nil, nil
	}
	v, err := decodeJSON(readable(b.json))
	if err != nil {
		return nil, fail(codeUser, "the request's parameters are no valid JSON: %v", err)
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case object:
		return v, nil
	}
	return nil, errNotObject
}

// withPath adds the path's parameters: a list is joined with what is there, another value replaces it.
func withPath(params, path object) object {
	for k, v := range path {
		list, isList := v.([]any)
		have, exists := params[k]
		if !isList || !exists {
			params[k] = v
			continue
		}
		more, isMore := have.([]any)
		if !isMore {
			more = []any{have}
		}
		params[k] = unique(append(slices.Clone(list), more...))
	}
	return params
}

func unique(list []any) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(v any) bool {
		k := text(v)
		dup := seen[k]
		seen[k] = true
		return dup
	})
}

// dropOddNames removes, at every depth, members whose name is not made of word characters, dots and dashes.
func dropOddNames(v any) {
	switch v := v.(type) {
	case object:
		for k, e := range v {
			if !plainName(k) {
				delete(v, k)
				continue
			}
			dropOddNames(e)
		}
	case []any:
		for _, e := range v {
			dropOddNames(e)
		}
	}
}

func plainName(name string) bool {
	name = strings.TrimSuffix(name, "\n")
	for _, r := range name {
		if r != '_' && r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return false
		}
	}
	return name != ""
}
