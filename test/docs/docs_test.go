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

func TestEveryReasonIsDocumented(t *testing.T) {
	code := found(sources(t, "mapping", "proxy", "upstream", "upstream/switchover/idmap"), `(?m)^(?:const)?\s*[Rr]eason\w+\s+(?:mapping\.)?Reason\s*=\s*"([a-z-]+)"`)
	table := found(read(t, "../../docs/reference/errors.md"), "(?m)^\\| `([a-z-]+)` \\|")
	if !slices.Equal(code, table) || len(code) < 10 {
		t.Errorf("the program has the reasons\n%q\nand the page has\n%q", code, table)
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

func TestEveryMetricIsDocumented(t *testing.T) {
	text := sources(t, "proxy/admin")
	code := found(text, `\.(?:counter|gauge|histogram|onScrape)\("(\w+)"`)
	code = append(code, found(text, `Opts\{Name: "(\w+)"`)...)
	for i := range code {
		code[i] = "portico_" + code[i]
	}
	slices.Sort(code)
	table := found(read(t, "../../docs/reference/metrics.md"), "(?m)^\\| `(portico_\\w+)` \\|")
	if !slices.Equal(code, table) || len(code) < 10 {
		t.Errorf("the program has the metrics\n%q\nand the page has\n%q", code, table)
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

func TestEveryReasonOfTheAlarmIsDocumented(t *testing.T) {
	code := found(sources(t, "proxy/admin"), `(?m)^\t"([a-z-]+)":\s+\{(?:Red|Amber),`)
	table := found(read(t, "../../docs/reference/status.md"), "(?m)^\\| `([a-z-]+)` \\| (?:red|amber) \\|")
	if !slices.Equal(code, table) || len(code) < 8 {
		t.Errorf("the program has the reasons\n%q\nand the page has\n%q", code, table)
	}
}
