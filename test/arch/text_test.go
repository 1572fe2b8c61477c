package arch

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// banned are texts that no file of the project may hold.
var banned = []struct {
	what    string
	pattern *regexp.Regexp
	// files limits the rule to names that match; nil is all.
	files *regexp.Regexp
}{
	{
		what:    "a path of one machine",
		pattern: regexp.MustCompile(`(?m)(^|[\s"'` + "`" + `=(:])/(home|Users|root|work|tmp|private|farm)/[\w.-]`),
	},
	{
		what:    "a package registry, which is the business of the machine that builds",
		pattern: regexp.MustCompile(`proxy\.golang\.|sum\.golang\.|goproxy\.|deb\.debian\.|registry\.npmjs|pypi\.org|index\.docker\.`),
	},
	{
		what:    "a private key",
		pattern: regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE ` + `KEY-----`),
	},
	{
		what:    "a mark of unfinished work: finish it or write an issue",
		pattern: regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		files:   regexp.MustCompile(`\.(go|md|ya?ml|sh)$|^[A-Z]|^\.ci/`),
	},
	{
		what:    "a mark of a merge that was not finished",
		pattern: regexp.MustCompile(`(?m)^(<{7}|>{7}) `),
	},
}

// checkText finds banned texts in a file.
func checkText(name string, content []byte) []string {
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	var wrong []string
	for _, b := range banned {
		if b.files != nil && !b.files.MatchString(name) {
			continue
		}
		for _, at := range b.pattern.FindAllIndex(content, -1) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: holds %s: %.80s", name, 1+bytes.Count(content[:at[1]], []byte("\n")), b.what, content[at[0]:]))
		}
	}
	return wrong
}

func TestNoFileSaysWhatItMustNot(t *testing.T) {
	for _, name := range tracked(t) {
		for _, wrong := range checkText(name, []byte(read(t, name))) {
			t.Error(wrong)
		}
	}
}

func TestBannedTextsAreFound(t *testing.T) {
	for text, wrong := range map[string]int{
		"see /" + "home/someone/notes":          1,
		"path=/" + "tmp/x":                      1,
		"\"/" + "root/go\"":                     1,
		"https://host/" + "home/page":           0,
		"GET /rest/bug/1/attachment":            0,
		"GOPROXY=https://proxy." + "golang.org": 1,
		"// TO" + "DO: later":                   1,
		"todo lists are fine":                   0,
		"-----BEGIN EC PRIVATE " + "KEY-----":   1,
		strings.Repeat("<", 7) + " HEAD":        1,
		"-----BEGIN CERTIFICATE-----":           0,
	} {
		if got := checkText("a.go", []byte(text)); len(got) != wrong {
			t.Errorf("got %q, want %d findings in %q", got, wrong, text)
		}
	}
}

// The go command reads the inputs of a target by the target's name, and says nothing of others.
func TestFuzzInputsHaveTheirTarget(t *testing.T) {
	names := tracked(t)
	targets := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllStringSubmatch(read(t, name), -1) {
				targets[path.Join(path.Dir(name), "testdata/fuzz", m[1])] = true
			}
		}
	}
	for _, name := range names {
		if folder := path.Dir(name); strings.Contains(folder, "testdata/fuzz/") && !targets[folder] {
			t.Errorf("%s: no target reads it", name)
		}
	}
}

func TestImageIsBuiltWithTheModulesGo(t *testing.T) {
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if m == nil || !strings.Contains(read(t, "Dockerfile"), "ARG GO_IMAGE=golang:"+m[1]) {
		t.Errorf("go.mod asks for go %s, the Dockerfile is built from something else", m)
	}
}
