package mapping

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Scope is one entry of inclusions or exclusions: a whole product, or some of
// its components (interface.md section 1.3).
type Scope struct {
	Product string
	// Components is nil for the whole product; an empty list names none.
	Components []string
}

// Scopes is the value of inclusions or exclusions in either form.
type Scopes []Scope

// ParseScopes reads both forms of the interface, and arrays that mix them,
// which the raw tracker takes too: ["P", {"Q": ["c"]}].
func ParseScopes(name string, value jsontext.Value) (scopes Scopes, err *Error) {
	if value.Kind() != '{' && value.Kind() != '[' {
		return nil, wrongType(name, "an array of product names or an object of component lists")
	}
	scopes = Scopes{}
	for _, item := range items(value) {
		if scopes, err = appendScope(name, scopes, item); err != nil {
			return nil, err
		}
	}
	return scopes, nil
}

// appendScope adds a product, or those of an object.
func appendScope(name string, scopes Scopes, item jsontext.Value) (Scopes, *Error) {
	if isNoScalar(item) && item.Kind() != '{' {
		return nil, wrongType(name, "an array of product names and of objects")
	}
	for _, member := range splitObject(item) {
		components, err := componentList(name, member.Value)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, Scope{strings.TrimSpace(member.Name), components})
	}
	if item.Kind() == '{' {
		return scopes, nil
	}
	text, _ := wordText(item)
	product := strings.TrimSpace(text)
	if product == "" {
		return nil, Refuse(CodeRequired, "The parameter %q has an entry without a product name.", name)
	}
	return append(scopes, Scope{Product: product}), nil
}

// componentList reads a product's components. An empty array names none, so that the
// flag type applies nowhere in the product. A raw tracker takes null for the same
// (tracker-behaviour.md section 3, Inclusions in detail), but interface.md demands an array,
// and a client that means the whole product must not lose it.
func componentList(name string, value jsontext.Value) ([]string, *Error) {
	list := items(value)
	if value.Kind() != '[' || slices.ContainsFunc(list, isNoScalar) {
		return nil, wrongType(name, "an object whose values are arrays of component names")
	}
	components := make([]string, 0, len(list))
	for _, item := range list {
		text, _ := wordText(item)
		component := strings.TrimSpace(text)
		if component == "" {
			return nil, Refuse(CodeRequired, "The parameter %q has an entry without a component name.", name)
		}
		components = append(components, component)
	}
	return components, nil
}

// array writes the form that every 5.x tracker understands: an array of
// product names and of objects.
func (s Scopes) array() jsontext.Value {
	return arrayOf(s, func(dst []byte, scope Scope) []byte {
		if scope.Components == nil {
			return appendQuoted(dst, scope.Product)
		}
		return Members{{scope.Product, arrayOf(scope.Components, appendQuoted)}}.AppendJSON(dst)
	})
}

func isMemberName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && !strings.ContainsRune("_.-", r)
	})
}
