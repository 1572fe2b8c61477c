package mapping

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one name and value of a JSON object, the value still as text.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Members is a JSON object in the order it was written. Names are compared
// byte for byte, because trackers tell Name from name (wire-facts.md section 10).
type Members []Member

// ParseMembers reads a JSON object. Numbers keep every digit; duplicate names
// and invalid UTF-8 are errors.
func ParseMembers(object []byte) (Members, error) {
	value := jsontext.Value(object)
	if value.Kind() != '{' {
		return nil, Refuse(CodeJSON, "The request body must be a JSON object.")
	}
	if !value.IsValid() {
		return nil, Refuse(CodeJSON, "The request body is not valid JSON.")
	}
	return splitObject(value), nil
}

// splitObject takes apart an object that is known to be valid.
func splitObject(object jsontext.Value) Members {
	var members Members
	eachMember(object, func(name string, value jsontext.Value) {
		members = append(members, Member{Name: name, Value: value})
	})
	return members
}

// Get finds a member's value; nil means that it is absent.
func (m Members) Get(name string) jsontext.Value {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value
		}
	}
	return nil
}

// Set replaces a member's value or appends a new member.
func (m *Members) Set(name string, value jsontext.Value) {
	for i := range *m {
		if (*m)[i].Name == name {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, Member{Name: name, Value: value})
}

// Take removes a member and gives its value; nil means that it was absent.
func (m *Members) Take(name string) jsontext.Value {
	for i := range *m {
		if (*m)[i].Name == name {
			value := (*m)[i].Value
			*m = slices.Delete(*m, i, i+1)
			return value
		}
	}
	return nil
}

// SetText sets a member to a JSON string.
func (m *Members) SetText(name, text string) { m.Set(name, quote(text)) }

// AppendJSON appends the object's text to dst.
func (m Members) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, quote(m[i].Name)...)
		dst = append(dst, ':')
		dst = append(dst, m[i].Value...)
	}
	return append(dst, '}')
}

// Clone copies the list; values are shared, as nobody changes them in place.
func (m Members) Clone() Members { return slices.Clone(m) }

// quote makes a JSON string. Invalid UTF-8 becomes U+FFFD, never an error.
func quote(text string) jsontext.Value {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}

// unquote gives the text of a JSON string that is known to be valid.
func unquote(value jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// eachMember calls visit for every member of a valid object, in order.
func eachMember(object jsontext.Value, visit func(name string, value jsontext.Value)) {
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.ReadToken(); err != nil {
		return
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return
		}
		text := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return
		}
		visit(text, value.Clone())
	}
}

// eachItem calls visit for every item of a valid array, in order.
func eachItem(array jsontext.Value, visit func(item jsontext.Value)) {
	decoder := jsontext.NewDecoder(bytes.NewReader(array))
	if _, err := decoder.ReadToken(); err != nil {
		return
	}
	for kind := decoder.PeekKind(); kind != ']' && kind != 0; kind = decoder.PeekKind() {
		item, err := decoder.ReadValue()
		if err != nil {
			return
		}
		visit(item.Clone())
	}
}
