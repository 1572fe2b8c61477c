package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"portico/upstream/canary/compare"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// TestEveryKeyIsRead finds keys that the program does not read. What checks the values does not count, nor do the tests.
func TestEveryKeyIsRead(t *testing.T) {
	read := selectedNames(t)
	// Types of other packages, and those that are converted to such types as a whole.
	converted := []reflect.Type{
		reflect.TypeFor[switchover.Rule](), reflect.TypeFor[switchover.Passthrough](), reflect.TypeFor[compare.Equivalence](), reflect.TypeOf(Rate{}.Anonymous), reflect.TypeOf(Rate{}.Keyed),
		reflect.TypeFor[idmap.Rule](), reflect.TypeFor[idmap.Names](),
	}
	var look func(reflect.Type)
	look = func(section reflect.Type) {
		for f := range section.Fields() {
			kind, name := f.Type, f.Name
			if section == reflect.TypeFor[Config]() {
				name = "cfg." + name
			}
			if f.Tag.Get("key") != "" && !read[name] {
				t.Errorf("nothing reads %s of %s", name, section)
			}
			if kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			if isSection(kind) && !slices.Contains(converted, kind) {
				look(kind)
			}
		}
	}
	look(reflect.TypeFor[Config]())
}

// selectedNames lists what the program selects from values, outside the files that
// describe and check the configuration; with cfg. before it where the value is
// called that.
func selectedNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	collect := func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			slices.Contains([]string{"config.go", "validate.go", "check.go"}, name) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
				names[strings.ToLower(lastName(s.X))+"."+s.Sel.Name] = true
			}
			return true
		})
		return nil
	}
	for _, folder := range []string{"..", "../../../cache", "../../../upstream/canary", "../../../upstream/journal"} { // they read their own settings
		if err := filepath.WalkDir(folder, collect); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// lastName is the last name of an expression such as b.cfg.
func lastName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
