package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"testing"
)

// vague matches names that say nothing about what a thing is.
var vague = regexp.MustCompile(`(Manager|Helper|Helpers|Util|Utils|Impl)$|^(util|utils|helper|helpers|common|misc)$`)

// checkNames finds types and packages with such names, and functions init, which
// run on import.
func checkNames(s source) []string {
	var wrong []string
	report := func(pos token.Pos, format, name string) {
		wrong = append(wrong, fmt.Sprintf("%s:%d: "+format, s.name, s.line(pos), name))
	}
	if vague.MatchString(s.file.Name.Name) {
		report(s.file.Package, "package %s is named for nothing in the field", s.file.Name.Name)
	}
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				report(d.Pos(), "func %s hides work in an import", d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if x, ok := spec.(*ast.TypeSpec); ok && vague.MatchString(x.Name.Name) {
					report(x.Pos(), "type %s is named for nothing in the field", x.Name.Name)
				}
			}
		}
	}
	return wrong
}

// everySource runs a check over every file of the project.
func everySource(t *testing.T, check func(source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, wrong := range check(s) {
			t.Error(wrong)
		}
	}
}

func TestNamesSayWhatThingsAre(t *testing.T) { everySource(t, checkNames) }

func TestBadStyleIsFound(t *testing.T) {
	if got := checkNames(parseSource(t, "", "p.go", "package util\ntype ThingManager struct{}\ntype Implement int\nfunc init() {}\n")); len(got) != 3 {
		t.Errorf("got %q, want 3 findings", got)
	}
}
