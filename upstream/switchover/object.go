package switchover

import (
	"fmt"
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
	// allTypes is the flag types of every product.
	allTypes
)

// object is one thing that a call is about, as far as the request says. It is
// comparable, with names in lower case where it is remembered.
type object struct {
	kind objectKind
	// id is a bug's or an attachment's; alias a bug's that was asked for by one.
	id    int64
	alias string
	// product and component of flag types. An empty product is one that no rule
	// names, an empty component the product as a whole.
	product, component string
}

// bugNamed reads a bug's id or alias as the tracker does (wire-facts.md section 5).
func bugNamed(ref string) object {
	ref = strings.TrimSpace(ref)
	if id, ok := number(ref); ok {
		return object{kind: bugObject, id: id}
	}
	return object{kind: bugObject, alias: strings.ToLower(ref)}
}

// number reads digits; with anything else, or too many of them, it fails.
func number(text string) (int64, bool) {
	id, err := strconv.ParseUint(text, 10, 63)
	return int64(id), err == nil
}

// ref is how a tracker is asked for a bug. There is no bug 0, which the tracker says
// itself; it cannot be asked for a bug without any name.
func (o *object) ref() string {
	if o.alias != "" {
		return o.alias
	}
	return strconv.FormatInt(o.id, 10)
}

// String names the object in errors.
func (o object) String() string {
	o.alias, o.product, o.component = short(o.alias), short(o.product), short(o.component)
	switch {
	case o.kind == bugObject && o.alias != "":
		return fmt.Sprintf("bug %q", o.alias)
	case o.kind == bugObject:
		return fmt.Sprintf("bug %d", o.id)
	case o.kind == attachmentObject:
		return fmt.Sprintf("attachment %d", o.id)
	case o.kind == allTypes:
		return "flag types of every product"
	case o.product == "" && o.component == "":
		return "flag types of products that no rule names"
	case o.product == "":
		return fmt.Sprintf("flag types of component %q of products that no rule names", o.component)
	case o.component == "":
		return fmt.Sprintf("flag types of product %q", o.product)
	default:
		return fmt.Sprintf("flag types of component %q of product %q", o.component, o.product)
	}
}

// short cuts a name that somebody made up, for an error to hold.
func short(name string) string {
	const most = 100
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// longestName is longer than any name that a tracker takes.
const longestName = 1 << 10

// plausible tells whether there can be such an object: nothing else is worth being
// remembered.
func (o object) plausible() bool { return len(o.alias)+len(o.product) <= longestName }

// remembered is the form in which a written object is kept: of flag types only
// the product, as every read of it shows them.
func (o object) remembered() object {
	if o.kind == typesObject && o.product == "" {
		return object{kind: allTypes}
	}
	return object{kind: o.kind, id: o.id, alias: o.alias, product: strings.ToLower(strings.TrimSpace(o.product))}
}

func bugsNamed(refs []string) []object {
	objects := make([]object, len(refs))
	for i, ref := range refs {
		objects[i] = bugNamed(ref)
	}
	return objects
}

func attachmentsNumbered(ids []int64) []object {
	objects := make([]object, len(ids))
	for i, id := range ids {
		objects[i] = object{kind: attachmentObject, id: id}
	}
	return objects
}

// places lists the smallest places that rules could tell apart in scopes: a
// product stands for itself and for each component of it that a rule names.
func (t *table) places(scopes mapping.Scopes) []object {
	var all []object
	for _, scope := range scopes {
		switch {
		case isEvery(scope.Product):
			all = append(all, t.everywhere...)
		case scope.Components == nil:
			all = t.appendProduct(all, scope.Product)
		default:
			for _, component := range scope.Components {
				all = append(all, object{kind: typesObject, product: scope.Product, component: component})
			}
		}
	}
	return all
}

// isEvery tells whether a tracker means every product by a name.
func isEvery(product string) bool { return strings.HasPrefix(product, "__Any__") }

// appendProduct appends a product and its components that a rule names.
func (t *table) appendProduct(all []object, product string) []object {
	all = append(all, object{kind: typesObject, product: product})
	for i := range t.rules {
		rule := &t.rules[i]
		if len(rule.Products) > 0 && !hasName(rule.Products, product) {
			continue
		}
		for _, component := range rule.Components {
			all = append(all, object{kind: typesObject, product: product, component: component})
		}
	}
	return all
}

// allPlaces lists what rules could tell apart in all products.
func (t *table) allPlaces() []object {
	all := t.appendProduct(nil, "")
	for i := range t.rules {
		for _, product := range t.rules[i].Products {
			all = t.appendProduct(all, product)
		}
	}
	return all
}
