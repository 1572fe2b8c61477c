package mapping

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Scope is one entry of inclusions or exclusions: a whole product, or some of
// its components (interface.md, Inclusion/exclusion format).
type Scope struct {
	Product string
	// Components is nil for the whole product; an empty list names none.
	Components []string
}

// Scopes is the value of inclusions or exclusions in either form.
type Scopes []Scope

// ParseScopes reads both forms of the interface, and arrays that mix them,
// which the raw tracker takes too: ["P", {"Q": ["c"]}].
func ParseScopes(name string, value jsontext.Value) (Scopes, *Error) {
	switch value.Kind() {
	case '{':
		return objectScopes(name, Scopes{}, value)
	case '[':
		return arrayScopes(name, value)
	default:
		return nil, wrongType(name, "an array of product names or an object of component lists")
	}
}

func arrayScopes(name string, array jsontext.Value) (Scopes, *Error) {
	scopes := Scopes{}
	var failed *Error
	eachItem(array, func(item jsontext.Value) {
		if failed == nil {
			scopes, failed = appendScope(name, scopes, item)
		}
	})
	return scopes, failed
}

func appendScope(name string, scopes Scopes, item jsontext.Value) (Scopes, *Error) {
	if item.Kind() == '{' {
		return objectScopes(name, scopes, item)
	}
	if isNoScalar(item) {
		return nil, wrongType(name, "an array of product names and of objects")
	}
	product, _ := wordText(item)
	product = strings.TrimSpace(product)
	if product == "" {
		return nil, Refuse(CodeRequired, "The parameter %q has an entry without a product name.", name)
	}
	return append(scopes, Scope{Product: product}), nil
}

func objectScopes(name string, scopes Scopes, object jsontext.Value) (Scopes, *Error) {
	for _, member := range splitObject(object) {
		components, err := componentList(name, member.Value)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, Scope{Product: strings.TrimSpace(member.Name), Components: components})
	}
	return scopes, nil
}

// componentList reads a product's components. An empty array names none, so that the
// flag type applies nowhere in the product. A raw tracker takes null for the same
// (wire-facts.md section 3, Inclusions in detail), but interface.md demands an array,
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

// appendJSON writes the form that every 5.x tracker understands: an array of
// product names and of objects.
func (s Scopes) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, scope := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		if scope.Components == nil {
			dst = append(dst, quote(scope.Product)...)
			continue
		}
		dst = append(append(append(dst, '{'), quote(scope.Product)...), ':')
		dst = append(appendTexts(dst, scope.Components), '}')
	}
	return append(dst, ']')
}

// Sorted gives the same scopes by their products. The members of an object, from which they may come, have no order.
func (s Scopes) Sorted() Scopes {
	return slices.SortedStableFunc(slices.Values(s), func(a, b Scope) int { return strings.Compare(a.Product, b.Product) })
}

// inexpressible finds a product whose components a 5.x tracker cannot be told:
// it silently drops members whose name has characters other than letters,
// digits, and . _ - (wire-facts.md section 1, Request bodies).
func (s Scopes) inexpressible() (product string, found bool) {
	for _, scope := range s {
		if len(scope.Components) > 0 && !isMemberName(scope.Product) {
			return scope.Product, true
		}
	}
	return "", false
}

func isMemberName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && !strings.ContainsRune("_.-", r)
	})
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, quote(text)...)
	}
	return append(dst, ']')
}
