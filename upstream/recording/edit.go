package recording

import (
	"bytes"
	"html"
	"mime"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// edit gives what comes in place of a value, by the name that it has: that of a parameter or member, "" where it has none, and "name"
// for the names of members themselves and the segments of a path. Values come without the escapes of the text that they are in. What
// is not changed keeps its spelling, to the byte.
type edit func(name, value string) string

// isForeign reports whether a character is in no name of a parameter: what has one may be a text in a form that was not recognised.
func isForeign(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.-[] ", r)
}

var (
	pathPiece     = regexp.MustCompile(`[^/;]+`)
	queryPiece    = regexp.MustCompile(`[^&;]+`)
	escapedBraces = regexp.MustCompile(`%7B%7B([a-z]+-[0-9a-fx-]+)%7D%7D`)
	escape        = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	callbackFrame = regexp.MustCompile(`(?s)^(/\*\*/[A-Za-z0-9_.\[\]]+\()(.*)(\);?\s*)$`)
	// rpcText matches calls and responses of XML-RPC, rpcPiece a tag in one with the text behind it.
	rpcText = regexp.MustCompile(`^\s*(?:<\?xml(?: (?:version|encoding)=["'][\w.-]+["'])*\s*\?>\s*)?(?:</?(?:method(?:Call|Response|Name)|params?|value|struct|member|name|array|` +
		`data|fault|string|int|i4|i8|double|boolean|dateTime\.iso8601|base64|nil)/?>[^<]*)+$`)
	rpcPiece = regexp.MustCompile(`<[^<>]+>[^<]*`)
)

// target edits the target of a request: path and query.
func (f edit) target(target string) string {
	path, query, found := strings.Cut(target, "?")
	path = pathPiece.ReplaceAllStringFunc(path, func(segment string) string {
		if strings.Contains(segment, "=") { // a parameter that a client wrote into the path by mistake
			return f.pair(segment)
		}
		return f.spelt("name", segment)
	})
	if !found {
		return path
	}
	return path + "?" + f.pairs(query)
}

// pairs edits a query, or a form that is written like one.
func (f edit) pairs(text string) string { return queryPiece.ReplaceAllStringFunc(text, f.pair) }

// pair edits a parameter, or a text that has no name.
func (f edit) pair(piece string) string {
	escapedName, value, found := strings.Cut(piece, "=")
	name := unescaped(escapedName)
	if !found || strings.ContainsFunc(name, isForeign) {
		return f.spelt("", piece)
	}
	return escapedName + "=" + f.spelt(name, value)
}

// spelt edits a text that has the escapes of a query. The parameter params holds JSON, for JSON-RPC.
func (f edit) spelt(name, escaped string) string {
	text, edit := unescaped(escaped), f
	if name == "params" && isJSON([]byte(text)) {
		edit = func(_, text string) string { return string(f.json([]byte(text))) }
	}
	edited := edit(name, text)
	if edited == text {
		return escaped
	}
	return escapedBraces.ReplaceAllString(url.QueryEscape(edited), "{{$1}}")
}

// unescaped takes off the escapes of a query; a stray percent sign stays (recorded as proto.bad_percent_query).
func unescaped(text string) string {
	return escape.ReplaceAllStringFunc(strings.ReplaceAll(text, "+", " "), func(code string) string {
		plain, _ := url.PathUnescape(code) // it matches
		return plain
	})
}

// body edits a body by what it is, whatever it is said to be: trackers take JSON of any type (tracker-behaviour.md section 1). It
// understands JSON, also in the frame of a callback, XML-RPC and forms.
func (f edit) body(headers map[string]string, body []byte) (edited []byte, understood bool) {
	coding := headerOf(headers, "Content-Encoding")
	frame := callbackFrame.FindSubmatch(body)
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return body, true
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return nil, false
	case isJSON(body):
		return f.json(body), true
	case len(frame) > 0 && isJSON(frame[2]):
		return slices.Concat(frame[1], f.json(frame[2]), frame[3]), true
	case mediaType(headers) == "application/x-www-form-urlencoded":
		return []byte(f.pairs(string(body))), true
	case rpcText.Match(body):
		return []byte(f.xml(string(body))), true
	}
	return nil, false
}

// headerOf finds a header whatever the case of its name.
func headerOf(headers map[string]string, name string) string {
	for each, value := range headers {
		if strings.EqualFold(each, name) {
			return value
		}
	}
	return ""
}

func mediaType(headers map[string]string) string {
	kind, _, _ := mime.ParseMediaType(headerOf(headers, "Content-Type"))
	return kind
}

func isJSON(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// json edits the strings and numbers of a JSON text, which must be valid. What takes their place is a string.
func (f edit) json(text []byte) []byte {
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out []byte
	copied := int64(0)
	scalar := func(name string) string {
		raw, _ := in.ReadValue() // the text is valid
		value := textOf(raw)
		if kind := raw.Kind(); kind != '"' && kind != '0' {
			return ""
		}
		if edited := f(name, value); edited != value {
			end := in.InputOffset()
			out = append(out, text[copied:end-int64(len(raw))]...)
			out, _ = jsontext.AppendQuote(out, edited) // what is not UTF-8 is replaced
			copied = end
		}
		return value
	}
	var walk func(name string)
	walk = func(name string) {
		kind := in.PeekKind()
		if kind != '{' && kind != '[' {
			scalar(name)
			return
		}
		_, _ = in.ReadToken()
		for strings.IndexByte("]}\x00", byte(in.PeekKind())) < 0 {
			inner := name
			if kind == '{' {
				inner = below(name, scalar("name"))
			}
			walk(inner)
		}
		_, _ = in.ReadToken()
	}
	walk("")
	return append(out, text[copied:]...)
}

// textOf gives the text of a JSON string, in which what is not UTF-8 is replaced, and any other value as it is written.
func textOf(value jsontext.Value) string {
	if value.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	}
	return string(value)
}

// xml edits the texts in a call or a response of XML-RPC.
func (f edit) xml(text string) string {
	names := []string{""} // of the members that are open
	return rpcPiece.ReplaceAllStringFunc(text, func(piece string) string {
		tag, content, _ := strings.Cut(piece, ">")
		value, last := html.UnescapeString(content), len(names)-1
		name := names[last]
		switch {
		case tag == "<member":
			names = append(names, "")
		case tag == "</member" && last > 0:
			names = names[:last]
		case tag == "<methodName":
			name = "method"
		case tag == "<name" && last > 0:
			names[last], name = below(names[last-1], strings.TrimSpace(value)), "name"
		}
		if strings.TrimSpace(value) == "" {
			return piece
		}
		if edited := f(name, value); edited != value {
			content = html.EscapeString(edited)
		}
		return tag + ">" + content
	})
}
