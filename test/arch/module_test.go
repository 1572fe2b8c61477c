package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulePath is the module's own import path, with the slash behind it.
const modulePath = "portico/"

// root finds the top of the project.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("there is no go.mod above this folder")
	return ""
}

// listedPackage is what go list knows about a package.
type listedPackage struct {
	ImportPath                         string
	Standard                           bool
	Imports, TestImports, XTestImports []string
	Module                             *struct{ Path string }
}

// folder is the path of a package inside the module.
func (p listedPackage) folder() string { return strings.TrimPrefix(p.ImportPath, modulePath) }

// own reports whether the package is part of the module.
func (p listedPackage) own() bool { return strings.HasPrefix(p.ImportPath, modulePath) }

// packages asks the go command for every package of the module and all that they
// are made of.
func packages(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var list []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// tracked lists the files that belong to the project, by their path from its top:
// those that git tracks or would. Where git cannot tell, all of them count. The
// walk is needed in any case: the go command must see which folders this test
// depends on, or it would repeat an old result.
func tracked(t *testing.T) []string {
	t.Helper()
	top := root(t)
	names := walk(t, top)
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		return names
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		known[name] = true
	}
	return slices.DeleteFunc(names, func(name string) bool { return !known[name] })
}

// walk lists all files below a folder but those that git or the build made.
func walk(t *testing.T, top string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".bin", ".cache", "bin"}, entry.Name()):
			return filepath.SkipDir
		case entry.Type().IsRegular():
			name, err := filepath.Rel(top, path)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// source is one Go file of the project.
type source struct {
	name string
	fset *token.FileSet
	file *ast.File
}

// isTest reports whether the file is compiled for tests only.
func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// line is the line of a position.
func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// parseSource parses one file; content may be nil for the file on disk.
func parseSource(t *testing.T, top, name string, content any) source {
	t.Helper()
	s := source{name: name, fset: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.fset, filepath.Join(top, name), content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sources parses every Go file of the project.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			all = append(all, parseSource(t, root(t), name, nil))
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files were found: this test looks at the wrong folder", len(all))
	}
	return all
}
