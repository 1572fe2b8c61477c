package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// settled are the functions whose result never changes once it is made: errors,
// compiled expressions and tables.
var settled = map[string]bool{
	"errors.New":            true,
	"fmt.Errorf":            true,
	"regexp.MustCompile":    true,
	"strings.NewReplacer":   true,
	"view.New":              true,
	"netip.MustParsePrefix": true,
	"netip.MustParseAddr":   true,
	"reflect.TypeFor":       true,
	"crc32.MakeTable":       true,
	"sync.OnceValue":        true,
	"sync.OnceValues":       true,
}

// shared are package variables that are state and have a reason to be, by package
// and name.
var shared = map[string]string{
	"mapping.splitters":   "a sync.Pool: holds nothing that a caller could see",
	"mapping.copyBuffers": "a sync.Pool: holds nothing that a caller could see",
}

// checkVariables finds package variables that can change: those that are made in
// another way than a table or by a settled function, and those that some code of
// the package writes to.
func checkVariables(files []source) []string {
	var wrong []string
	declared := map[string]source{}
	for _, s := range files {
		for _, decl := range s.file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				x := spec.(*ast.ValueSpec)
				for i, name := range x.Names {
					key := s.file.Name.Name + "." + name.Name
					if name.Name == "_" || shared[key] != "" || embedded(d, x) {
						continue
					}
					declared[name.Name] = s
					if len(x.Values) != len(x.Names) || !constant(x.Values[i]) {
						wrong = append(wrong, fmt.Sprintf("%s:%d: %s is package state", s.name, s.line(name.Pos()), name.Name))
					}
				}
			}
		}
	}
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			for _, target := range written(n) {
				if _, ok := declared[target.Name]; ok && !local(s, target) {
					wrong = append(wrong, fmt.Sprintf("%s:%d: the package variable %s is changed", s.name, s.line(target.Pos()), target.Name))
				}
			}
			return true
		})
	}
	return wrong
}

// embedded reports whether a variable is filled by the compiler.
func embedded(d *ast.GenDecl, x *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{d.Doc, x.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if len(c.Text) > 10 && c.Text[:10] == "//go:embed" {
				return true
			}
		}
	}
	return false
}

// constant reports whether an expression makes something that stays as it is.
func constant(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit, *ast.CompositeLit, *ast.FuncLit, *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.UnaryExpr:
		return x.Op != token.ARROW && constant(x.X)
	case *ast.BinaryExpr:
		return constant(x.X) && constant(x.Y)
	case *ast.ParenExpr:
		return constant(x.X)
	case *ast.CallExpr:
		return settledCall(x)
	}
	return false
}

// settledCall reports whether a call is a conversion, one of the settled
// functions, or computes a table: in place or in a function that takes nothing and
// is called make….
func settledCall(x *ast.CallExpr) bool {
	fun := x.Fun
	if i, ok := fun.(*ast.IndexExpr); ok {
		fun = i.X
	}
	switch f := fun.(type) {
	case *ast.ArrayType, *ast.ParenExpr, *ast.FuncLit:
		return true
	case *ast.Ident:
		return len(x.Args) == 0 && strings.HasPrefix(f.Name, "make")
	case *ast.SelectorExpr:
		pkg, ok := f.X.(*ast.Ident)
		return ok && settled[pkg.Name+"."+f.Sel.Name]
	}
	return false
}

// written returns the names that a node writes to: by assignment, by ++, through
// an index or a field.
func written(n ast.Node) []*ast.Ident {
	var targets []ast.Expr
	switch x := n.(type) {
	case *ast.AssignStmt:
		if x.Tok != token.DEFINE {
			targets = x.Lhs
		}
	case *ast.IncDecStmt:
		targets = []ast.Expr{x.X}
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(x.Args) > 0 {
			targets = x.Args[:1]
		}
	}
	var names []*ast.Ident
	for _, t := range targets {
		if name := base(t); name != nil {
			names = append(names, name)
		}
	}
	return names
}

// base is the variable at the root of an expression that is written to.
func base(e ast.Expr) *ast.Ident {
	switch x := e.(type) {
	case *ast.Ident:
		return x
	case *ast.IndexExpr:
		return base(x.X)
	case *ast.SelectorExpr:
		return base(x.X)
	case *ast.StarExpr:
		return base(x.X)
	}
	return nil
}

// local reports whether the function around a use declares the same name itself.
func local(s source, use *ast.Ident) bool {
	found := false
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || use.Pos() < f.Pos() || use.Pos() > f.End() {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.AssignStmt:
				if x.Tok == token.DEFINE {
					for _, l := range x.Lhs {
						name, ok := l.(*ast.Ident)
						found = found || ok && name.Name == use.Name
					}
				}
			case *ast.Field:
				for _, name := range x.Names {
					found = found || name.Name == use.Name
				}
			case *ast.ValueSpec:
				for _, name := range x.Names {
					found = found || name.Name == use.Name
				}
			case *ast.RangeStmt:
				for _, e := range []ast.Expr{x.Key, x.Value} {
					name, ok := e.(*ast.Ident)
					found = found || ok && name.Name == use.Name
				}
			}
			return !found
		})
	}
	return found
}

func TestPackagesHaveNoState(t *testing.T) {
	byPackage := map[string][]source{}
	for _, s := range sources(t) {
		if !s.isTest() {
			byPackage[path.Dir(s.name)] = append(byPackage[path.Dir(s.name)], s)
		}
	}
	for _, files := range byPackage {
		for _, wrong := range checkVariables(files) {
			t.Error(wrong)
		}
	}
}

func TestStateIsFound(t *testing.T) {
	for content, wrong := range map[string]int{
		"var a int": 1,
		"var a = func() [9]int { var t [9]int; return t }()": 0,
		"var a = makeTable()":                                0,
		"var a = makeTable()\nfunc f() { a[1] = 2 }":         1,
		"var a = f()":                             1,
		"var a = make(map[string]int)":            1,
		"var a sync.Mutex":                        1,
		"var a = []string{`b`}":                   0,
		"var a = errors.New(`b`)":                 0,
		"var _ I = (*T)(nil)":                     0,
		"var a = []int{1}\nfunc f() { a[0] = 2 }": 1,
		"var a = map[int]int{}\nfunc f() { delete(a, 1); a[2]++ }":      2,
		"var a = T{}\nfunc f() { a.b.c = 2 }":                           1,
		"var a = T{}\nfunc f() { a := 1; a = 2 }":                       0,
		"var a = T{}\nfunc f(a int) { a = 2 }":                          0,
		"var a = []byte(`x`)":                                           0,
		"//go:embed x\nvar a embed.FS":                                  0,
		"var a = reflect.TypeFor[int]()":                                0,
		"var (\n\ta = 1\n\tb = time.Now()\n)":                           1,
		"const a = 1\nvar b = a + 1\ntype c struct{}\nfunc d() { }":     0,
		"var a = T{}\nfunc f() { for a := range x { a.b = 1; _ = a } }": 0,
	} {
		s := parseSource(t, "", "p.go", "package p\n"+content+"\n")
		if got := checkVariables([]source{s}); len(got) != wrong {
			t.Errorf("got %q, want %d findings in\n%s", got, wrong, content)
		}
	}
}

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

func TestNamesSayWhatThingsAre(t *testing.T) {
	for _, s := range sources(t) {
		for _, wrong := range checkNames(s) {
			t.Error(wrong)
		}
	}
}

func TestBadStyleIsFound(t *testing.T) {
	if got := checkNames(parseSource(t, "", "p.go", "package util\ntype ThingManager struct{}\ntype Implement int\nfunc init() {}\n")); len(got) != 3 {
		t.Errorf("got %q, want 3 findings", got)
	}
}
