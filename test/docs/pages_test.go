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

// top is the root of the module.
const top = "../.."

// pages gives all pages of the project, relative to its root.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".github" && path != top
		if entry.IsDir() && (hidden || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			name, err := filepath.Rel(top, path)
			all = append(all, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil || len(all) < 30 {
		t.Fatalf("only %d pages were found: %v", len(all), err)
	}
	return all
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code      = regexp.MustCompile("`[^`\n]*`")
	anyFence  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	anyTitle  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors gives the fragments that lead to the headings of a page, as code hosting sites make them.
func anchors(text string) []string {
	var all []string
	for _, found := range anyTitle.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
		plain := strings.ToLower(notAnchor.ReplaceAllString(found[1], ""))
		all = append(all, strings.ReplaceAll(strings.TrimSpace(plain), " ", "-"))
	}
	return all
}

// links gives the files that a page links to, relative to the root, and reports those that are not there.
func links(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, found := range link.FindAllStringSubmatch(anyFence.ReplaceAllString(read(t, filepath.Join(top, page)), ""), -1) {
		target, anchor, _ := strings.Cut(found[1], "#")
		if strings.Contains(target, ":") {
			continue // another site
		}
		file := page
		if target != "" {
			file = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
		}
		if _, err := os.Stat(filepath.Join(top, file)); err != nil {
			t.Errorf("%s links to %s, which is not there", page, target)
			continue
		}
		if anchor != "" && strings.HasSuffix(file, ".md") && !slices.Contains(anchors(read(t, filepath.Join(top, file))), anchor) {
			t.Errorf("%s links to %s, which has no heading %q", page, file, anchor)
		}
		all = append(all, file)
	}
	return all
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		links(t, page)
	}
}

// TestNamedFilesAreThere: a Go file that a page names with its folder is part of the project.
func TestNamedFilesAreThere(t *testing.T) {
	for _, page := range pages(t) {
		for _, name := range found(read(t, filepath.Join(top, page)), "`((?:\\w+/)+\\w+\\.go)`") {
			if _, err := os.Stat(filepath.Join(top, name)); err != nil {
				t.Errorf("%s names %s: %v", page, name, err)
			}
		}
	}
}

// TestEveryPageIsReachable follows links from README.md.
func TestEveryPageIsReachable(t *testing.T) {
	seen := map[string]bool{}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		if page := next[0]; strings.HasSuffix(page, ".md") && !seen[page] {
			seen[page] = true
			next = append(next, links(t, page)...)
		}
	}
	for _, page := range pages(t) {
		if !seen[page] && !strings.HasPrefix(page, ".github/") {
			t.Errorf("no link leads from README.md to %s", page)
		}
	}
}

// The bounds of sentences, in words: the mean, and what nine in ten stay under.
const (
	maxMean = 25
	long    = 35
)

var (
	item     = regexp.MustCompile(`^(?:[-*]|\d+\.) +`)
	sentence = regexp.MustCompile(`[.!?][)"*]*\s+`)
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	word     = regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`)
)

// sentences gives the sentences of a page: of paragraphs and items, without headings, tables and examples. What is in quotes of
// code counts as a word.
func sentences(text string) []string {
	var all []string
	var paragraph strings.Builder
	end := func() {
		plain := code.ReplaceAllString(linked.ReplaceAllString(paragraph.String(), "$1"), "code")
		for _, one := range sentence.Split(plain+" ", -1) {
			if len(word.FindAllString(one, -1)) > 2 {
				all = append(all, strings.TrimSpace(one))
			}
		}
		paragraph.Reset()
	}
	for line := range strings.Lines(anyFence.ReplaceAllString(text, "")) {
		plain := strings.TrimSpace(line)
		example := strings.HasPrefix(line, "    ") && paragraph.Len() == 0
		switch {
		case plain == "" || example || strings.ContainsRune("|#<", rune(plain[0])):
			end()
			continue
		case item.MatchString(plain):
			end()
			plain = item.ReplaceAllString(plain, "")
		}
		paragraph.WriteString(plain + " ")
	}
	end()
	return all
}

// styleOf says what is wrong with the sentences of a text; it is empty where nothing is.
func styleOf(text string) string {
	all := sentences(text)
	words, over := 0, []string{}
	for _, one := range all {
		n := len(word.FindAllString(one, -1))
		if words += n; n >= long {
			over = append(over, one)
		}
	}
	switch {
	case words > maxMean*len(all):
		return "sentences are too long in the mean"
	case 10*len(over) > len(all):
		return "more than a tenth of the sentences are too long:\n" + strings.Join(over, "\n")
	}
	return ""
}

// TestSentencesAreShort measures the pages that people read from top to bottom.
func TestSentencesAreShort(t *testing.T) {
	measured := 0
	for _, page := range pages(t) {
		folder := strings.SplitN(page, "/", 3)
		kinds := []string{"tutorial", "how-to", "reference", "explanation", "decisions"}
		inDocs := len(folder) == 2 && folder[0] == "docs" || len(folder) > 2 && slices.Contains(kinds, folder[1])
		if inDocs || len(folder) == 1 && page != "CHANGELOG.md" {
			measured++
			if wrong := styleOf(read(t, filepath.Join(top, page))); wrong != "" {
				t.Errorf("%s: %s", page, wrong)
			}
		}
	}
	if measured < 25 {
		t.Errorf("only %d pages were measured", measured)
	}
}

func TestLongSentencesAreFound(t *testing.T) {
	many := strings.Repeat("word ", long)
	for text, wrong := range map[string]bool{
		"Short is good. So is this one.":                           false,
		many + ".":                                                 true,
		"- " + many + "\n- Short is good.\n":                       true,
		"| " + many + " |\n\n```sh\n" + many + "\n```\n":           false,
		"    " + many + "\n":                                       false,
		strings.Repeat("Short is good. ", 10) + many + ".":         false,
		strings.Repeat("word ", 26) + ". " + many:                  true,
		"`" + many + "` is code. [" + "Short](" + "a.md) is good.": false,
	} {
		if got := styleOf(text); (got != "") != wrong {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestPagesUsePlainWords finds words that say who does something without saying it, and "a path that is none" for an invalid one.
func TestPagesUsePlainWords(t *testing.T) {
	vague := regexp.MustCompile(`(?i)\b(?:nobody|somebody|anybody|that (?:is|are) none|we|our)\b`)
	for _, page := range pages(t) {
		if word := vague.FindString(code.ReplaceAllString(read(t, filepath.Join(top, page)), "")); word != "" {
			t.Errorf("%s says %q", page, word)
		}
	}
}
