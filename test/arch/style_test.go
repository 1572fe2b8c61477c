package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is the greatest number of lines of a function.
const longest = 60

// checkLengths finds functions that are too long to be read at once. A function
// that returns one table is as long as the table.
func checkLengths(s source) []string {
	if s.isTest() {
		return nil
	}
	var wrong []string
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || isTable(f) {
			continue
		}
		if lines := s.line(f.End()) - s.line(f.Pos()) + 1; lines > longest {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s has %d lines, the limit is %d", s.name, s.line(f.Pos()), f.Name.Name, lines, longest))
		}
	}
	return wrong
}

// isTable reports whether a function does nothing but return a literal.
func isTable(f *ast.FuncDecl) bool {
	if f.Body == nil || len(f.Body.List) != 1 {
		return false
	}
	r, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return false
	}
	_, ok = r.Results[0].(*ast.CompositeLit)
	return ok
}

// checkComments finds exported identifiers without a comment.
func checkComments(s source) []string {
	if s.isTest() {
		return nil
	}
	var wrong []string
	missing := func(pos token.Pos, name string, docs ...*ast.CommentGroup) {
		if ast.IsExported(name) && !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d != nil }) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s has no comment", s.name, s.line(pos), name))
		}
	}
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if ast.IsExported(receiver(d)) {
				missing(d.Pos(), d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				checkSpec(d, spec, missing)
			}
		}
	}
	return wrong
}

// receiver is the name of a method's type, or that of a function itself.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// checkSpec reports the names of a type, const or var declaration, and the
// methods of an interface.
func checkSpec(d *ast.GenDecl, spec ast.Spec, missing func(token.Pos, string, ...*ast.CommentGroup)) {
	switch x := spec.(type) {
	case *ast.TypeSpec:
		missing(x.Pos(), x.Name.Name, d.Doc, x.Doc)
		// The comment on an interface of one method is the comment on the method.
		if i, ok := x.Type.(*ast.InterfaceType); ok && x.Name.IsExported() && i.Methods.NumFields() > 1 {
			for _, method := range i.Methods.List {
				for _, name := range method.Names {
					missing(name.Pos(), name.Name, method.Doc, method.Comment)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range x.Names {
			missing(name.Pos(), name.Name, d.Doc, x.Doc, x.Comment)
		}
	}
}

// vague matches names that say nothing about what a thing is.
var vague = regexp.MustCompile(`(Manager|Helper|Helpers|Util|Utils|Impl)$|^(util|utils|helper|helpers|common|misc)$`)

// checkNames finds types and packages with such names, and functions init, which
// run before anybody asked for anything.
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

func TestFunctionsAreShort(t *testing.T) { everySource(t, checkLengths) }

func TestExportedIdentifiersHaveComments(t *testing.T) { everySource(t, checkComments) }

func TestNamesSayWhatThingsAre(t *testing.T) { everySource(t, checkNames) }

func TestEveryPackageHasAComment(t *testing.T) {
	described := map[string]bool{}
	for _, s := range sources(t) {
		if dir := s.name[:max(0, strings.LastIndexByte(s.name, '/'))]; !s.isTest() {
			described[dir] = described[dir] || s.file.Doc != nil
		}
	}
	for dir, ok := range described {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func TestBadStyleIsFound(t *testing.T) {
	long := "package p\nfunc f() {\n" + strings.Repeat("\tg()\n", longest) + "}\n"
	for _, tt := range []struct {
		check   func(source) []string
		content string
		wrong   int
	}{
		{checkLengths, long, 1},
		{checkLengths, strings.Replace(long, "\tg()\n\tg()\n", "", 1), 0},
		{checkLengths, "package p\nfunc f() []int {\n\treturn []int{\n" + strings.Repeat("\t1,\n", longest) + "}\n}\n", 0},
		{checkComments, "package p\nfunc F() {}\n// G is.\nfunc G() {}\nfunc h() {}\n", 1},
		{checkComments, "package p\n// T is.\ntype T[K any] struct{}\nfunc (t *T[K]) M() {}\nfunc (t T[K]) m() {}\ntype u int\nfunc (u) M() {}\n", 1},
		{checkComments, "package p\nvar A, b = 1, 2\n// Those are.\nconst (\n\tC = 1\n\tD = 2\n)\ntype E struct{}\n", 2},
		{checkComments, "package p\n// I is.\ntype I interface {\n\tM()\n\tN() // does.\n}\n", 1},
		{checkComments, "package p\n// I is.\ntype I interface{ M() }\n", 0},
		{checkNames, "package util\ntype ThingManager struct{}\ntype Implement int\nfunc init() {}\n", 3},
	} {
		if got := tt.check(parseSource(t, "", "p.go", tt.content)); len(got) != tt.wrong {
			t.Errorf("got %q, want %d findings in\n%s", got, tt.wrong, tt.content)
		}
	}
}
