package docs

import (
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestWalksAreTrue: each function that ARCHITECTURE.md lists on the path of a request is declared in the file before it. A file
// without a folder is in that of the file before.
func TestWalksAreTrue(t *testing.T) {
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, _ := strings.Cut(string(page), "Three requests, file by file")
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
