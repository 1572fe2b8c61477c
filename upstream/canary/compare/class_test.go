package compare

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEachClassHasARow: a class without one would have no description, and no rule could excuse it.
func TestEachClassHasARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "difference.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Class") {
			name, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			count++
			if Class(name).Means() == "" || !slices.Contains(Classes(), Class(name)) {
				t.Errorf("the class %s has no row, or no description in it", name)
			}
		}
		return true
	})
	if count == 0 || count != len(Classes()) {
		t.Errorf("%d classes are declared, and there are %d rows", count, len(Classes()))
	}
}

// TestEachTypeOfRuleExcusesAClass that has it in its row.
func TestEachTypeOfRuleExcusesAClass(t *testing.T) {
	for _, kind := range []EquivalenceType{TimeWithin, Regex, IntAsBool, IDMap, Set, URLHost, Extra, Pair} {
		if !slices.ContainsFunc(Classes(), func(c Class) bool { return slices.Contains(classes[c].rules, kind) }) {
			t.Errorf("no class has the rule %s", kind)
		}
	}
}

// TestEachClassHasAFamily: a class of differences is either noise of a kind or never noise.
func TestEachClassHasAFamily(t *testing.T) {
	for _, class := range Classes() {
		never := class == ClassFailure || class == ClassPlan || class == ClassLatency
		if (class.NoiseFamily(nil) == "") != never {
			t.Errorf("the family of %s is %q", class, class.NoiseFamily(nil))
		}
	}
}

// TestKindsOfTextsNameNewMarks: whoever accepts that a text became longer has not accepted that it gained a script.
func TestKindsOfTextsNameNewMarks(t *testing.T) {
	kinds := map[string]string{}
	for _, have := range []string{`"a text, copied"`, `"a text<script>alert(1)</script>"`, `"another one"`, `"another <b>one</b>"`} {
		d := Difference{Class: ClassValue, Object: "attachment 1", Path: "$.summary", Want: []byte(`"a text"`), Have: []byte(have)}
		kind := d.Kind()
		if former, known := kinds[kind]; known {
			t.Errorf("%s and %s are both of the kind %q", former, have, kind)
		}
		kinds[kind] = have
	}
}
