package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reference is the folder of the pages that code cites by section.
const reference = "../../docs/reference"

var (
	heading  = regexp.MustCompile(`(?m)^##+ (\d+(?:\.\d+)?)[. ]`)
	citation = regexp.MustCompile(`(interface|tracker-behaviour)\.md,? sections? (\d+(?:\.\d+)?(?:(?:, | to | and )\d+(?:\.\d+)?\b)*)`)
	number   = regexp.MustCompile(`\d+(?:\.\d+)?`)
	comment  = regexp.MustCompile(`\s*\n\s*//\s*`)
	outside  = regexp.MustCompile(`wire-facts|DESIGN\.md|(?:^|[^/])\bclients\.md`)
)

// TestCitations checks that each section that a Go file cites exists in docs/reference, and that no file cites a page that is
// not part of the project.
func TestCitations(t *testing.T) {
	sections := map[string][]string{}
	for _, page := range []string{"interface", "tracker-behaviour"} {
		text, err := os.ReadFile(filepath.Join(reference, page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
			sections[page] = append(sections[page], found[1])
		}
	}
	cited := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "citations_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		plain := string(text)
		if !strings.Contains(plain, ".md") && !strings.Contains(plain, "wire-facts") {
			return nil
		}
		plain = comment.ReplaceAllString(plain, " ")
		for _, found := range citation.FindAllStringSubmatch(plain, -1) {
			cited++
			for _, section := range number.FindAllString(found[2], -1) {
				if !slices.Contains(sections[found[1]], section) {
					t.Errorf("%s: %s.md has no section %s", path, found[1], section)
				}
			}
		}
		if found := outside.FindString(plain); found != "" {
			t.Errorf("%s cites %q, which is not part of the project", path, strings.TrimSpace(found))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if cited < 100 {
		t.Errorf("only %d citations found: the pattern no longer fits", cited)
	}
}
