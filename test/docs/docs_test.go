// Package docs holds the documentation against the program: every code, reason and metric that one has, the other has too.
package docs

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/process"
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
	process.Must(t, err)
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
		{"outcome of a call", "reference/metrics.md", []string{"upstream/transport"}, `(?m)^\t\w+\s+Reason = "([a-z_]+)"`, "", "", "## Outcomes of calls", 10},
		{"reason of a dropped comparison", "reference/metrics.md", []string{"upstream/canary/verdict"}, `DropReason = "([a-z-]+)"`, "", "", "## Comparisons that were not made", 15},
		{"reason of the alarm", "reference/status.md", []string{"proxy/admin"},
			`(?m)^\t"([a-z-]+)":\s+\{(?:Red|Amber),`, "", "(?m)^\\| `([a-z-]+)` \\| (?:red|amber) \\|", "", 8},
		{"word of Cache-Status", "reference/http.md", []string{"cache"}, `(?m)^\s*(?:detail|forward)\w+\s*= "([a-z-]+)"`, "", "", "## Cache-Status", 15},
		{"fault or quirk of the reference tracker", "how-to/test-a-client.md", []string{"test/tracker"},
			`(?m)^\s*(?:Fault|Quirk)\w+\s+(?:FaultKind|Quirk)\s*= "([a-z0-9_-]+)"`, "", "", "", 30},
		{"key that needs a restart", "reference/configuration.md", []string{"cmd/portico/config", "upstream/journal"},
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

// Every test that docs/explanation/security.md names as a proof is there, and so is each that fails, as CONTRIBUTING.md says, when a place is forgotten.
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
	process.Must(t, err)
	for _, name := range found(read(t, "../../CONTRIBUTING.md"), "`(Test\\w+)`") {
		if !have[name] {
			t.Errorf("CONTRIBUTING.md names %s, which is no test", name)
		}
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

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

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
		for _, found := range heading.FindAllStringSubmatch(read(t, filepath.Join(reference, page+".md")), -1) {
			sections[page] = append(sections[page], found[1])
		}
	}
	cited := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "docs_test.go") {
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
	process.Must(t, err)
	if cited < 100 {
		t.Errorf("only %d citations found: the pattern no longer fits", cited)
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// TestWalksAreTrue: each function that ARCHITECTURE.md lists on the path of a request is declared in the file before it. A file
// without a folder is in that of the file before.
func TestWalksAreTrue(t *testing.T) {
	_, walks, _ := strings.Cut(read(t, "../../ARCHITECTURE.md"), "Three requests, file by file")
	walks, _, _ = strings.Cut(walks, "\n## ")
	folder, checked := "", 0
	for line := range strings.SplitSeq(walks, "\n") {
		if !regexp.MustCompile(`^\d+\. `).MatchString(line) {
			continue
		}
		for part := range strings.SplitSeq(line, ";") {
			names := quoted.FindAllStringSubmatch(part, -1)
			if len(names) == 0 || !strings.HasSuffix(names[0][1], ".go") {
				continue
			}
			file := names[0][1]
			if strings.Contains(file, "/") {
				folder = path.Dir(file)
			} else {
				file = path.Join(folder, file)
			}
			text, err := os.ReadFile("../../" + file)
			if err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(part), err)
				continue
			}
			for _, name := range names[1:] {
				_, function, found := strings.Cut(name[1], ".")
				if !found {
					function = name[1]
				}
				if function == "go" { // another file
					continue
				}
				checked++
				if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function + `[(\[]`).Match(text) {
					t.Errorf("%s declares no %s", file, function)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d functions are listed", checked)
	}
	cached, _, _ := strings.Cut(walks, "**An upload**")
	files := map[string]int{}
	for _, file := range regexp.MustCompile("`([a-z/]+\\.go)`: ").FindAllStringSubmatch(regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(cached, ""), -1) {
		files[file[1]]++
	}
	said, most := regexp.MustCompile(`passes (\d+) files`).FindStringSubmatch(cached), 12
	if len(said) == 0 || said[1] != strconv.Itoa(len(files)) || len(files) > most {
		t.Errorf("a cached read passes %d files, the text says %q, and wanted are at most %d", len(files), said, most)
	}
	for file, times := range files {
		if times > 1 {
			t.Errorf("a cached read returns to %s", file)
		}
	}
}
