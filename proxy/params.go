package proxy

import (
	"strings"
	"unicode/utf8"
)

// parameter is one name and value of a query or of a form body.
type parameter struct{ name, value string }

// parameters are those of one request in their order.
type parameters []parameter

// parseQuery reads a query as a tracker does: & and ; separate, a plus is a blank, and an escape that is none stays as it
// is written. Text that is not UTF-8 is taken as Latin-1, and ok is false (recorded as proto.semicolon,
// proto.bad_percent_query, proto.latin1_query).
func parseQuery(query string) (list parameters, ok bool) {
	ok = true
	for piece := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(piece, "=")
		name, fine := queryText(name, false)
		value, valueFine := queryText(value, name == "data")
		list = append(list, parameter{name, value})
		ok = ok && fine && valueFine
	}
	return list, ok
}

// queryText takes the escapes off. In base64 a plus means itself, whatever the rules of forms say: otherwise a payload would
// be damaged without a word.
func queryText(text string, base64 bool) (plain string, ok bool) {
	if !base64 {
		text = strings.ReplaceAll(text, "+", " ")
	}
	plain = unescapeAll(text)
	if utf8.ValidString(plain) {
		return plain, true
	}
	return latin1(plain), false
}

func latin1(text string) string {
	var decoded strings.Builder
	for i := range len(text) {
		decoded.WriteRune(rune(text[i]))
	}
	return decoded.String()
}

// all gives every value of a name.
func (p parameters) all(name string) []string {
	var values []string
	for _, each := range p {
		if each.name == name {
			values = append(values, each.value)
		}
	}
	return values
}

// first gives the first value of a name, empty when there is none.
func (p parameters) first(name string) string {
	for _, each := range p {
		if each.name == name {
			return each.value
		}
	}
	return ""
}

// fieldNames reads include_fields or exclude_fields: repeated, or joined by comma, blank or plus (wire-facts.md, section 5).
func (p parameters) fieldNames(name string) []string {
	joined := strings.Join(p.all(name), ",")
	return strings.FieldsFunc(joined, func(r rune) bool { return strings.ContainsRune(", +\t\r\n", r) })
}
