package mapping

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one name and value of a JSON object, the value still as text.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Members is a JSON object in the order it was written. Names are compared
// byte for byte, because trackers tell Name from name (tracker-behaviour.md section 10).
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

// Get finds a member's value; nil means that it is absent.
func (m Members) Get(name string) jsontext.Value {
	for _, each := range m {
		if each.Name == name {
			return each.Value
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
	for i, each := range *m {
		if each.Name == name {
			*m = slices.Delete(*m, i, i+1)
			return each.Value
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
		dst = append(appendQuoted(dst, m[i].Name), ':')
		dst = append(dst, m[i].Value...)
	}
	return append(dst, '}')
}

// Clone copies the list; values are shared, as they are never changed in place.
func (m Members) Clone() Members { return slices.Clone(m) }

// quote makes a JSON string. Invalid UTF-8 becomes U+FFFD, never an error.
func quote(text string) jsontext.Value { return appendQuoted(nil, text) }

func appendQuoted(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

// unquote gives the text of a JSON string that is known to be valid.
func unquote(value jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// splitObject takes apart an object that is known to be valid. Any other value has no members.
func splitObject(object jsontext.Value) Members {
	if object.Kind() != '{' {
		return nil
	}
	list := elements(object)
	members := slices.Grow(Members(nil), len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		members = append(members, Member{Name: unquote(list[i]), Value: list[i+1]})
	}
	return members
}

// items gives the items of a valid array; any other value is the only item.
func items(value jsontext.Value) []jsontext.Value {
	if value.Kind() != '[' {
		return []jsontext.Value{value}
	}
	return elements(value)
}

// elements gives the items of a valid array, or the names and values of a valid object in turn.
func elements(container jsontext.Value) []jsontext.Value {
	var list []jsontext.Value
	decoder := jsontext.NewDecoder(bytes.NewBuffer(container), jsontext.AllowDuplicateNames(true))
	_, err := decoder.ReadToken()
	for err == nil && !strings.ContainsRune("]}\x00", rune(decoder.PeekKind())) {
		element, failed := decoder.ReadValue()
		list, err = append(list, element), failed
	}
	return list
}

// arrayOf writes a JSON array, whose items appendItem appends one after the other.
func arrayOf[T any](list []T, appendItem func(dst []byte, item T) []byte) jsontext.Value {
	array := []byte{'['}
	for i, item := range list {
		if i > 0 {
			array = append(array, ',')
		}
		array = appendItem(array, item)
	}
	return append(array, ']')
}
