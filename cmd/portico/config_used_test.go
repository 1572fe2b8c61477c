package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// notYetRead are keys that nothing reads, with the reason.
var notYetRead = map[string]string{}

// A key that nobody reads is a promise that nobody keeps. What checks the values
// does not count as a reader, nor do the tests.
func TestEveryKeyIsRead(t *testing.T) {
	read := selectedNames(t)
	var look func(reflect.Type)
	look = func(section reflect.Type) {
		for _, f := range fieldsOf(section) {
			name, kind := section.Field(f.index).Name, section.Field(f.index).Type
			if section == reflect.TypeFor[Config]() {
				name = "cfg." + name
			}
			if _, known := notYetRead[name]; read[name] == known {
				t.Errorf("%s: read is %t, listed as not read is %t", name, read[name], known)
			}
			if kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			if isSection(kind) {
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
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") ||
			slices.Contains([]string{"config.go", "config_switchover.go", "config_canary.go", "config_load.go", "check.go"}, f.Name()) ||
			strings.Contains(f.Name(), "validate") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
				names[lastName(s.X)+"."+s.Sel.Name] = true
			}
			return true
		})
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
