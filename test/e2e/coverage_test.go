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
	"strconv"
	"strings"
	"testing"
)

// testNames lists the tests of this package whose name begins with prefix.
func testNames(t *testing.T, prefix string) []string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, prefix) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// table reads the rows of the tables in a document, without their heads.
func table(t *testing.T, document string) [][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", document))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	head := true
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.Trim(line, "|-: ") == "":
			head = false
		case !head:
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// namesIn lists the clients and duties that a text names.
func namesIn(cell string) []string {
	return regexp.MustCompile(`(Duty|Client)_\w+`).FindAllString(cell, -1)
}

func TestEveryClientAndDutyHasItsRow(t *testing.T) {
	t.Parallel()
	rows := table(t, "docs/reference/clients.md")
	var named []string
	numbers := map[string]bool{}
	for _, row := range rows {
		tests := namesIn(row[len(row)-1])
		if len(tests) == 0 {
			t.Errorf("the row of %s names no test", row[0])
		}
		named = append(named, tests...)
		number, err := strconv.Atoi(row[0])
		if err != nil {
			continue
		}
		numbers[row[0]] = true
		for _, name := range tests {
			if !strings.HasPrefix(name, fmt.Sprintf("Duty_%02d_", number)) {
				t.Errorf("the row of duty %d names %s", number, name)
			}
		}
	}
	for number := range 21 {
		if !numbers[strconv.Itoa(number+1)] {
			t.Errorf("duty %d has no row", number+1)
		}
	}
	var tested []string
	for _, name := range append(testNames(t, "TestDuty_"), testNames(t, "TestClient_")...) {
		tested = append(tested, strings.TrimPrefix(name, "Test"))
	}
	for _, each := range append(duties(), legacyClients()...) {
		tested = append(tested, each.name)
	}
	slices.Sort(named)
	slices.Sort(tested)
	if tested = slices.Compact(tested); !slices.Equal(named, tested) {
		t.Errorf("docs/reference/clients.md names %q, and there are the tests %q", named, tested)
	}
	for _, row := range rows {
		if len(row) != 5 {
			continue // a row of the second table, whose first cell is the number
		}
		for number := range strings.SplitSeq(row[3], ", ") {
			if !numbers[number] {
				t.Errorf("%s leans on %q, which is no duty", row[0], number)
			}
		}
	}
}
