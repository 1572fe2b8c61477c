package switchover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
)

// objectKind says what an object is.
type objectKind uint8

const (
	bugObject objectKind = iota
	attachmentObject
	// typesObject is the flag types of a product or of one of its components.
	typesObject
)

// object is one thing that a call is about, as far as the request says. It is
// comparable, with names in lower case where it is remembered.
type object struct {
	kind objectKind
	// id is that of a bug or an attachment; alias is that of a bug which the request names by it.
	id    int64
	alias string
	// product and component of flag types. An empty product is one that no rule
	// names or, of what was written, every product; an empty component is the product as a whole.
	product, component string
}

// bugNamed reads a bug's id or alias as the tracker does (tracker-behaviour.md section 5).
func bugNamed(ref string) object {
	ref = strings.TrimSpace(ref)
	if id, err := strconv.ParseUint(ref, 10, 63); err == nil || ref == "" {
		return object{kind: bugObject, id: int64(id)}
	}
	return object{kind: bugObject, alias: strings.ToLower(ref)}
}

// attachmentNamed reads an attachment's id; what is not a number is attachment 0,
// which no tracker has.
func attachmentNamed(ref string) object {
	id, _ := strconv.ParseUint(strings.TrimSpace(ref), 10, 63)
	return attachmentNumbered(int64(id))
}

func attachmentNumbered(id int64) object { return object{kind: attachmentObject, id: id} }

// objectsOf gives the objects that references of one kind mean.
func objectsOf[T any](refs []T, read func(T) object) []object {
	objects := make([]object, len(refs))
	for i, ref := range refs {
		objects[i] = read(ref)
	}
	return objects
}

// String names the object in errors.
func (o object) String() string {
	switch {
	case o.kind == attachmentObject:
		return fmt.Sprintf("attachment %d", o.id)
	case o.kind == bugObject && o.alias != "":
		return fmt.Sprintf("bug %q", short(o.alias))
	case o.kind == bugObject:
		return fmt.Sprintf("bug %d", o.id)
	}
	of := "flag types of "
	if o.component != "" {
		of += fmt.Sprintf("component %q of ", short(o.component))
	}
	if o.product == "" {
		return of + "products that no rule names"
	}
	return of + fmt.Sprintf("product %q", short(o.product))
}

// short cuts a name from a request to a length that fits into an error.
func short(name string) string {
	const maxLength = 100
	if len(name) <= maxLength {
		return name
	}
	return strings.ToValidUTF8(name[:maxLength], "") + "…"
}

// remembered is the form in which a written object is kept: of flag types only
// the product, as every read of it shows them.
func (o object) remembered() object {
	o.product, o.component = strings.ToLower(strings.TrimSpace(o.product)), ""
	return o
}

// sameName compares names as trackers do.
func sameName(a, b string) bool {
	return a == b || strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(one string) bool { return sameName(one, name) })
}

// places lists the smallest places that rules could tell apart in scopes: a
// product stands for itself and for each component of it that a rule names.
func (r *ruleSet) places(scopes mapping.Scopes) []object {
	var all []object
	for _, scope := range scopes {
		switch {
		case strings.HasPrefix(scope.Product, "__Any__"): // a tracker means every product by it
			all = append(all, r.everywhere...)
		case scope.Components == nil:
			all = r.appendProduct(all, scope.Product)
		default:
			for _, component := range scope.Components {
				all = append(all, object{kind: typesObject, product: scope.Product, component: component})
			}
		}
	}
	return all
}

// appendProduct appends a product and its components that a rule names.
func (r *ruleSet) appendProduct(all []object, product string) []object {
	all = append(all, object{kind: typesObject, product: product})
	for _, rule := range r.source.Rules {
		if len(rule.Products) == 0 || hasName(rule.Products, product) {
			for _, component := range rule.Components {
				all = append(all, object{kind: typesObject, product: product, component: component})
			}
		}
	}
	return all
}
