package mapping

import (
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
	if item.Kind() == '[' {
		return nil, wrongType(name, "an array of product names, not of arrays")
	}
	product, _ := scalarText(item)
	product = strings.TrimSpace(product)
	if product == "" {
		return nil, Refuse(CodeRequired, "The parameter %q has an entry without a product name.", name)
	}
	return append(scopes, Scope{Product: product}), nil
}

func objectScopes(name string, scopes Scopes, object jsontext.Value) (Scopes, *Error) {
	var failed *Error
	eachMember(object, func(product string, value jsontext.Value) {
		components, ok := componentList(value)
		if !ok && failed == nil {
			failed = wrongType(name, "an object whose values are arrays of component names")
		}
		scopes = append(scopes, Scope{Product: strings.TrimSpace(product), Components: components})
	})
	if failed != nil {
		return nil, failed
	}
	return scopes, nil
}

// componentList reads a product's components; null counts as none, as for the
// raw tracker (wire-facts.md section 3, Inclusions in detail).
func componentList(value jsontext.Value) (components []string, ok bool) {
	if value.Kind() == 'n' {
		return []string{}, true
	}
	if value.Kind() != '[' {
		return nil, false
	}
	components, ok = scalarList(value)
	for i := range components {
		components[i] = strings.TrimSpace(components[i])
	}
	return components, ok
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
