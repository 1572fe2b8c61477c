package compare

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Compare gives the differences between the replies of the reference and of the candidate, in a stable order: status, code,
// message, headers, body. Those that a rule excuses are among them and name it. It only reads its arguments. What is equal byte for
// byte costs little; what is not takes time in proportion to its length and depth.
//
// Where the code differs, or the status without a rule that excuses it, the rest is bound to differ and is not compared. Of more
// than ten thousand differences the last one is of ClassDigest for the whole.
func Compare(operation mapping.Operation, reference, candidate Reply, rules Rules) []Difference {
	c := &comparison{operation: operation, rules: rules}
	if reference.Failure != "" || candidate.Failure != "" {
		c.add(ClassFailure, placeOf(PathFailure), textOrNil(reference.Failure), textOrNil(candidate.Failure))
		return c.found
	}
	c.add(ClassStatus, placeOf(PathStatus), integer(reference.Status), integer(candidate.Status))
	c.add(ClassCode, placeOf(PathCode), integer(reference.Code), integer(candidate.Code))
	if reference.Code != candidate.Code || len(c.found) > 0 && c.found[0].Rule == "" {
		return c.found
	}
	if !bytes.Equal(withoutAddresses([]byte(reference.Message)), withoutAddresses([]byte(candidate.Message))) {
		c.add(ClassMessage, placeOf(PathMessage), textOrNil(reference.Message), textOrNil(candidate.Message))
	}
	names := map[string]string{}
	maps.Copy(names, reference.Header)
	maps.Copy(names, candidate.Header)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.add(ClassHeader, placeOf(PathHeader+name), textOrNil(reference.Header[name]), textOrNil(candidate.Header[name]))
	}
	c.bodies(reference, candidate, shapeOf(operation))
	return c.found
}

// Plans compares the requests that two trackers would be sent for the same call, given as JSON objects. All differences are of
// ClassPlan.
func Plans(operation mapping.Operation, reference, candidate jsontext.Value, rules Rules) []Difference {
	c := &comparison{operation: operation, rules: rules, plan: true}
	c.bodies(Reply{Body: reference}, Reply{Body: candidate}, planShape)
	return c.found
}

// comparison is the state of one Compare.
type comparison struct {
	reader
	operation mapping.Operation
	rules     Rules
	plan      bool
	found     []Difference
}

const maxFound = 10_000

func integer(n int) jsontext.Value { return jsontext.Value(strconv.Itoa(n)) }

func textOrNil(text string) jsontext.Value {
	if text == "" {
		return nil
	}
	return quote(text)
}

// bodies compares the bodies member by member if both can be read so, and else by digest.
func (c *comparison) bodies(reference, candidate Reply, shape *Shape) {
	root, before := placeOf("$"), len(c.found)
	switch {
	case bytes.Equal(reference.Body, candidate.Body):
		return
	case reference.Body == nil:
		c.add(ClassExtra, root, nil, candidate.Body)
		return
	case candidate.Body == nil:
		c.add(ClassMissing, root, reference.Body, nil)
		return
	}
	want, have := parse(reference.Body), parse(candidate.Body)
	if want != nil && have != nil && !reference.Long && !candidate.Long {
		c.values(root, shape, want, have)
		switch {
		case c.nodes == maxNodes:
			c.found = c.found[:before]
		case len(c.found) > maxFound:
			c.found = c.found[:maxFound-1]
		default:
			return
		}
	}
	digestOf := func(n *node, body []byte) string {
		if n == nil {
			return hash(string(bytes.TrimSpace(body)))
		}
		return c.digest(n.raw, shape)
	}
	first, second := digestOf(want, reference.Body), digestOf(have, candidate.Body)
	if first != second {
		c.add(ClassDigest, root, contentText(int64(len(reference.Body)), first, false), contentText(int64(len(candidate.Body)), second, false))
	}
}

// add adds a difference unless both values are the same text, and says which rule excuses it.
func (c *comparison) add(class Class, at place, want, have jsontext.Value) {
	switch {
	case class != ClassOrder && bytes.Equal(want, have): // ids that occur twice can be in another order
	case len(c.found) > maxFound: // one too many tells enough
	default:
		d := at.Difference
		d.Class, d.Want, d.Have = class, want, have
		if r := c.rule(d.Path, func(r *rule) bool { return r.excuses(d) }); r != nil {
			d.Rule = r.Name
		}
		if c.plan {
			d.Class = ClassPlan
		}
		c.found = append(c.found, d)
	}
}

// rule gives the first rule that applies to a path and fits, nil if none does.
func (c *comparison) rule(path string, fits func(*rule) bool) *rule {
	for _, r := range c.rules.list {
		if fits(r) && !c.rules.IsExpired(r.Equivalence) && (r.Operation == "" || r.Operation == c.operation) && r.path.MatchString(path) {
			return r
		}
	}
	return nil
}
