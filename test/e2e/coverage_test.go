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

// disagree tells what is in only one of two lists.
func disagree(document, tests []string) []string {
	var wrong []string
	for _, name := range document {
		if !slices.Contains(tests, name) {
			wrong = append(wrong, "the document names "+name+", which is no test of this package")
		}
	}
	for _, name := range tests {
		if !slices.Contains(document, name) {
			wrong = append(wrong, name+" has no row in the document")
		}
	}
	return wrong
}

func TestInterfaceCoverageIsComplete(t *testing.T) {
	t.Parallel()
	var named []string
	for _, row := range table(t, "docs/evidence/interface-coverage.md") {
		if len(row) != 3 || row[0] == "" || row[1] == "" {
			t.Errorf("a row without section, demand and test: %q", row)
			continue
		}
		named = append(named, strings.Trim(row[2], "`"))
	}
	for _, wrong := range disagree(named, testNames(t, "TestInterface_")) {
		t.Error(wrong)
	}
	if len(named) < 100 {
		t.Errorf("the table has %d rows only", len(named))
	}
}

func TestKnownFailuresAreTests(t *testing.T) {
	t.Parallel()
	tests := testNames(t, "Test")
	for name, reason := range knownFailures {
		if top, _, _ := strings.Cut(name, "/"); !slices.Contains(tests, top) || reason == "" {
			t.Errorf("%s is no test of this package, or has no reason", name)
		}
	}
}

func TestGapsInTheTableAreFound(t *testing.T) {
	t.Parallel()
	if wrong := disagree([]string{"TestA", "TestB"}, []string{"TestB", "TestC"}); len(wrong) != 2 ||
		!regexp.MustCompile("TestA").MatchString(wrong[0]) || !regexp.MustCompile("TestC").MatchString(wrong[1]) {
		t.Errorf("got %q", wrong)
	}
}

// namesIn lists the tests that a text names.
func namesIn(cell string) []string {
	return regexp.MustCompile(`Test(Duty|Client)_\w+`).FindAllString(cell, -1)
}

func TestEveryClientAndDutyHasItsRow(t *testing.T) {
	t.Parallel()
	rows := table(t, "docs/reference/clients.md")
	var named []string
	duties := map[string]bool{}
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
		duties[row[0]] = true
		for _, name := range tests {
			if !strings.HasPrefix(name, fmt.Sprintf("TestDuty_%02d_", number)) {
				t.Errorf("the row of duty %d names %s", number, name)
			}
		}
	}
	for number := range 21 {
		if !duties[strconv.Itoa(number+1)] {
			t.Errorf("duty %d has no row", number+1)
		}
	}
	for _, wrong := range disagree(named, append(testNames(t, "TestDuty_"), testNames(t, "TestClient_")...)) {
		t.Error(wrong)
	}
	for _, row := range rows {
		if len(row) != 5 {
			continue // a row of the second table, whose first cell is the number
		}
		for number := range strings.SplitSeq(row[3], ", ") {
			if !duties[number] {
				t.Errorf("%s leans on %q, which is no duty", row[0], number)
			}
		}
	}
}
