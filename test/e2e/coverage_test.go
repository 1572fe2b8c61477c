package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testNames lists the clients and duties that are tests of their own.
func testNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && regexp.MustCompile(`^Test(Duty|Client)_`).MatchString(f.Name.Name) {
				names = append(names, strings.TrimPrefix(f.Name.Name, "Test"))
			}
		}
	}
	return names
}

// TestEveryClientAndDutyHasItsRow compares the tables of docs/reference/clients.md with the tests and with each other.
func TestEveryClientAndDutyHasItsRow(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/clients.md")
	must(t, err)
	var named []string
	rows := regexp.MustCompile(`(?m)^\| (.+) \|$`).FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		cells := strings.Split(row[1], "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		tests := regexp.MustCompile(`(Duty|Client)_\w+`).FindAllString(cells[len(cells)-1], -1)
		named = append(named, tests...)
		var duty int
		switch _, err := fmt.Sscanf(cells[0]+".", "%d.", &duty); {
		case cells[0] == "client" || cells[0] == "duty":
		case len(tests) == 0:
			t.Errorf("the row of %s names no test", cells[0])
		case err == nil && slices.ContainsFunc(tests, func(name string) bool { return !strings.HasPrefix(name, fmt.Sprintf("Duty_%02d_", duty)) }):
			t.Errorf("the row of duty %d names %q", duty, tests)
		case err != nil:
			for number := range strings.SplitSeq(cells[3], ", ") {
				if !strings.Contains(string(page), "\n| "+number+" | ") {
					t.Errorf("%s leans on %q, which is no duty", cells[0], number)
				}
			}
		}
	}
	tested := testNames(t)
	for _, each := range append(duties(), legacyClients()...) {
		tested = append(tested, each.name)
	}
	slices.Sort(named)
	slices.Sort(tested)
	if tested = slices.Compact(tested); !slices.Equal(named, tested) || len(rows) < 40 {
		t.Errorf("docs/reference/clients.md names %q, and there are the tests %q", named, tested)
	}
}
