// Package docs holds the documentation against the program: every code, reason and metric that one has, the other has too.
package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portico/mapping"
)

// sources gives the text of all Go files of some folders, without tests.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				all.WriteString(read(t, file))
			}
		}
	}
	return all.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found gives what the first group of a pattern matches in a text, sorted.
func found(text, pattern string) []string {
	set := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		set[match[1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// TestEveryNameIsDocumented: each word of a kind that the program has is on its page, and where a table lists them, no other one.
func TestEveryNameIsDocumented(t *testing.T) {
	pages := "../../docs/"
	for _, c := range []struct {
		what, page string
		folders    []string
		// code finds the names in the source, which the page has with a prefix.
		code, prefix string
		// row finds them on the page; where it is empty, the section has each somewhere, in quotes of code.
		row, section string
		atLeast      int
	}{
		{"reason of an error", "reference/errors.md", []string{"mapping", "proxy", "upstream", "upstream/switchover/idmap"},
			`(?m)^(?:const)?\s*[Rr]eason\w+\s+(?:mapping\.)?Reason\s*=\s*"([a-z-]+)"`, "", "(?m)^\\| `([a-z-]+)` \\|", "", 10},
		{"metric", "reference/metrics.md", []string{"proxy/admin"},
			`(?:\.(?:counter|gauge|histogram|onScrape)\(|Opts\{Name: )"(\w+)"`, "portico_", "(?m)^\\| `(portico_\\w+)` \\|", "", 10},
		{"reason of the alarm", "reference/status.md", []string{"proxy/admin"},
			`(?m)^\t"([a-z-]+)":\s+\{(?:Red|Amber),`, "", "(?m)^\\| `([a-z-]+)` \\| (?:red|amber) \\|", "", 8},
		{"word of Cache-Status", "reference/http.md", []string{"cache"}, `(?m)^\s*(?:detail|forward)\w+\s*= "([a-z-]+)"`, "", "", "## Cache-Status", 15},
		{"fault or quirk of the reference tracker", "how-to/test-a-client.md", []string{"test/tracker"},
			`(?m)^\s*(?:Fault|Quirk)\w+\s+(?:FaultKind|Quirk)\s*= "([a-z0-9_-]+)"`, "", "", "", 30},
		{"key that needs a restart", "reference/configuration.md", []string{"cmd/portico/config"},
			"key:\"(\\w+)\"[^`\n]*change:\"restart\"", "", "`(?:\\w+\\.)*(\\w+)`", "\n## Reload\n", 10},
	} {
		_, text, _ := strings.Cut(read(t, pages+c.page), c.section)
		if c.section != "" {
			text, _, _ = strings.Cut(text, "\n## ")
		}
		if c.what == "key that needs a restart" { // which the section lists, and speaks of others
			text = strings.Join(regexp.MustCompile(`(?m)^- .*$`).FindAllString(text, -1), "\n")
		}
		have := found(sources(t, c.folders...), c.code)
		for i := range have {
			have[i] = c.prefix + have[i]
			if !strings.Contains(text, have[i]+"`") {
				t.Errorf("docs/%s does not have the %s %q", c.page, c.what, have[i])
			}
		}
		if len(have) < c.atLeast {
			t.Errorf("of each %s only %q were found", c.what, have)
		}
		if c.row == "" {
			continue
		}
		if listed := found(text, c.row); !slices.Equal(have, listed) {
			t.Errorf("the program has each %s of\n%q\nand docs/%s has\n%q", c.what, have, c.page, listed)
		}
	}
}

func TestEveryCodeIsDocumented(t *testing.T) {
	page := read(t, "../../docs/reference/errors.md")
	code := found(sources(t, "mapping"), `(?m)^\s*Code\w+\s*=\s*(200[45]\d\d)`)
	table := found(page, `(?m)^\| (200[45]\d\d) \|`)
	for _, each := range code {
		if !slices.Contains(table, each) {
			t.Errorf("code %s is not in docs/reference/errors.md", each)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (200[45]\d\d) \| (\d+) \|`).FindAllStringSubmatch(page, -1) {
		number, err := strconv.Atoi(row[1])
		if err != nil || strconv.Itoa(mapping.StatusOf(number)) != row[2] {
			t.Errorf("docs/reference/errors.md gives code %s the status %s", row[1], row[2])
		}
	}
}

// Every test that docs/explanation/security.md names as a proof is there.
func TestEveryProofOfSecurityIsThere(t *testing.T) {
	have := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, name := range found(read(t, path), `(?m)^func ((?:Test|Fuzz)\w+)\(`) {
			have[name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(read(t, "../../docs/explanation/security.md"), "\n## Threats\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		if row[1] == "what could go wrong" {
			continue
		}
		rows++
		proofs := found(row[2], "`((?:Test|Fuzz)\\w+)`")
		if len(proofs) == 0 {
			t.Errorf("no test shows what prevents this: %s", row[1])
		}
		for _, proof := range proofs {
			if !have[proof] {
				t.Errorf("docs/explanation/security.md names %s, which is no test", proof)
			}
		}
	}
	if rows < 15 {
		t.Errorf("only %d threats were found", rows)
	}
}
