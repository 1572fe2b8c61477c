package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// anything marks a package that may import every other one.
const anything = "*"

// vocabulary is what every package outside mapping may import; mapping may import jsonblob.
var vocabulary = []string{"mapping", "mapping/jsonblob"}

// mayImport says for each package of the module which others it may import beside the vocabulary. The first pattern that matches
// counts (ARCHITECTURE.md, "Packages"). Only cmd and tests have the right to import test/*.
var mayImport = []struct {
	pkg string
	may []string
}{
	{"mapping/jsonblob", nil},
	{"mapping", nil},
	{"upstream", nil},
	{"upstream/bugzilla", []string{"upstream", "upstream/transport"}},
	{"upstream/canary", []string{"upstream", "upstream/state", "upstream/canary/*"}},
	{"upstream/canary/*", []string{"upstream", "upstream/state", "upstream/canary/compare"}},
	{"upstream/journal", []string{"upstream", "upstream/state"}},
	{"upstream/switchover", []string{"upstream", "upstream/journal", "upstream/state"}},
	{"upstream/switchover/*", []string{"upstream", "upstream/state", "upstream/switchover"}},
	{"upstream/recording", []string{"upstream", "upstream/canary", "upstream/canary/*", "upstream/state"}},
	{"upstream/*", []string{"upstream"}},
	{"cache", []string{"upstream"}},
	{"proxy", []string{"upstream", "upstream/bugzilla"}},
	{"proxy/fastpath", []string{"upstream"}},
	{"proxy/admin/view", nil},
	{"proxy/admin", []string{"upstream", "upstream/*", "upstream/canary/verdict", "cache", "proxy", "proxy/admin/view"}},
	{"proxy/admin/pages/transition", []string{"upstream", "upstream/canary/verdict", "upstream/journal", "upstream/state", "upstream/switchover"}},
	{"proxy/admin/pages", []string{"proxy/admin/pages/transition", "upstream/canary", "upstream/canary/*", "upstream/journal", "upstream/state", "upstream/switchover", "upstream/switchover/idmap", "proxy/admin", "proxy/admin/view"}},
	{"cmd/portico/config", []string{"upstream", "upstream/*", "upstream/canary/*", "upstream/switchover/*", "cache", "proxy"}},
	{"cmd/portico/app", []string{anything}},
	{"cmd/portico", []string{anything}},
	{"test/...", []string{anything}},
}

// thirdParty says for each module outside which packages may import it. A module that is missing here has no importer yet.
var thirdParty = []struct {
	module    string
	importers []string
}{
	{"github.com/julienschmidt/httprouter", []string{"proxy"}},
	{"github.com/go-resty/resty/v2", []string{"upstream/bugzilla"}},
	{"github.com/sony/gobreaker/v2", []string{"upstream/transport"}},
	{"github.com/redis/go-redis/v9", []string{"cache"}},
	{"github.com/alicebob/miniredis/v2", []string{"cache", "test/..."}},
	{"github.com/maypok86/otter/v2", []string{anything}},
	{"modernc.org/sqlite", []string{"upstream/state"}},
	{"github.com/jackc/pgx/v5", []string{"upstream/state"}},
	{"go.yaml.in/yaml/v3", []string{"cmd/portico", "cmd/portico/config"}},
	{"github.com/spf13/cobra", []string{"cmd/portico"}},
	{"github.com/spf13/pflag", []string{"cmd/portico"}},
	{"github.com/prometheus/client_golang", []string{"proxy/admin"}},
	{"go.opentelemetry.io/otel", []string{"cmd/portico", "cmd/portico/app"}},
	{"go.opentelemetry.io/otel/*", []string{"cmd/portico", "cmd/portico/app"}},
	{"go.opentelemetry.io/otel/exporters/otlp/otlptrace", []string{"cmd/portico/app"}},
	{"go.opentelemetry.io/proto/otlp", []string{"cmd/portico/app"}},
	{"google.golang.org/protobuf", []string{"cmd/portico/app"}},
	{"github.com/coreos/go-systemd/v22", []string{"cmd/portico/app"}},
	// The files of the project that the program prints.
	{"portico", []string{"cmd/portico"}},
	// No weight: they stand in for a part of the standard library.
	{"github.com/go-json-experiment/json", []string{anything}},
	{"github.com/dustin/go-humanize", []string{anything}},
	{"golang.org/x/*", []string{anything}},
	// Tests are not in this table.
	{"github.com/santhosh-tekuri/jsonschema/v6", nil},
	{"pgregory.net/rapid", nil},
	{"go.uber.org/goleak", nil},
}

// standard says the same of parts of the standard library.
var standard = []struct {
	pkg       string
	importers []string
}{
	{"database/sql", []string{"upstream/state"}},
	{"testing", []string{"upstream/upstreamtest", "test/..."}},
	{"net/http/httptest", []string{"upstream/upstreamtest", "test/..."}},
}

// forbiddenInTests are modules that only the tests of their importers use.
var forbiddenInTests = []string{
	"github.com/julienschmidt/httprouter", "github.com/go-resty/resty/v2", "github.com/sony/gobreaker/v2",
	"github.com/redis/go-redis/v9", "modernc.org/sqlite", "github.com/jackc/pgx/v5",
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/sdk",
}

// matches reports whether a package is in a list of patterns. As for the go command,
// a pattern that ends in /... means all below.
func matches(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if below, ok := strings.CutSuffix(p, "/..."); ok {
			return strings.HasPrefix(pkg, below+"/")
		}
		ok, err := path.Match(p, pkg)
		return p == anything || err == nil && ok
	})
}

// checkImports returns what is wrong with the imports of one package of the
// module. Modules tells the module of a foreign package.
func checkImports(p listedPackage, modules map[string]string) []string {
	i := slices.IndexFunc(mayImport, func(row struct {
		pkg string
		may []string
	}) bool {
		return matches(p.folder(), []string{row.pkg})
	})
	if i < 0 {
		return []string{p.ImportPath + " has no row in mayImport (test/arch/imports_test.go)"}
	}
	var wrong []string
	for _, imported := range p.Imports {
		if reason := checkImport(p.folder(), mayImport[i].may, imported, modules[imported]); reason != "" {
			wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, reason))
		}
	}
	for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
		if slices.Contains(forbiddenInTests, modules[imported]) && !allowed(p.folder(), modules[imported]) && !matches(p.folder(), []string{"test/..."}) {
			wrong = append(wrong, fmt.Sprintf("the tests of %s import %s, which only its importers test", p.ImportPath, imported))
		}
	}
	return wrong
}

// checkImport returns why a package may not import another one, or "".
func checkImport(pkg string, may []string, imported, module string) string {
	if target, own := strings.CutPrefix(imported, modulePath); own {
		switch {
		case strings.HasPrefix(target, "cmd/"):
			if !strings.HasPrefix(pkg, "cmd/") {
				return "only cmd imports the program"
			}
		case !matches(target, may) && (strings.HasPrefix(pkg, "mapping/") || !matches(target, vocabulary)):
			return "imports run cmd -> proxy -> upstream -> mapping"
		}
		return ""
	}
	for _, s := range standard {
		if s.pkg == imported && !matches(pkg, s.importers) {
			return "its importers are " + strings.Join(s.importers, ", ")
		}
	}
	if module != "" && !allowed(pkg, module) {
		return "thirdParty in test/arch/imports_test.go does not allow it"
	}
	return ""
}

// allowed reports whether a package may import a module outside.
func allowed(pkg, module string) bool {
	for _, t := range thirdParty {
		if ok, err := path.Match(t.module, module); err == nil && ok {
			return matches(pkg, t.importers)
		}
	}
	return false
}

func TestImportsRunOneWay(t *testing.T) {
	all := packages(t)
	modules := map[string]string{}
	for _, p := range all {
		if p.Module != nil && !p.own() {
			modules[p.ImportPath] = p.Module.Path
		}
	}
	checked := 0
	for _, p := range all {
		if !p.own() {
			continue
		}
		checked++
		for _, wrong := range checkImports(p, modules) {
			t.Error(wrong)
		}
	}
	if checked < 5 {
		t.Errorf("only %d packages were looked at", checked)
	}
}

func TestWrongImportsAreFound(t *testing.T) {
	modules := map[string]string{
		"github.com/redis/go-redis/v9":   "github.com/redis/go-redis/v9",
		"github.com/unheard/of":          "github.com/unheard/of",
		"golang.org/x/sync/singleflight": "golang.org/x/sync",
		"modernc.org/sqlite":             "modernc.org/sqlite",
		"pgregory.net/rapid":             "pgregory.net/rapid",

		"go.opentelemetry.io/otel/attribute": "go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/sdk/trace": "go.opentelemetry.io/otel/sdk",
		"go.opentelemetry.io/otel/trace":     "go.opentelemetry.io/otel/trace",
	}
	for _, tt := range []struct {
		pkg, imported string
		good          bool
	}{
		{"mapping", "portico/upstream", false},
		{"mapping", "encoding/base64", true},
		{"mapping/jsonblob", "portico/mapping", false},
		{"upstream", "portico/mapping", true},
		{"upstream/bugzilla", "portico/upstream/transport", true},
		{"upstream/canary", "portico/upstream/switchover", false},
		{"upstream/canary", "database/sql", false},
		{"upstream/state", "database/sql", true},
		{"upstream/state", "modernc.org/sqlite", true},
		{"upstream/canary", "modernc.org/sqlite", false},
		{"upstream/state/sql", "portico/upstream", false},
		{"proxy", "portico/test/tracker", false},
		{"proxy", "testing", false},
		{"proxy", "portico/cmd/portico/config", false},
		{"cmd/portico", "portico/test/tracker", true},
		{"cmd/portico", "portico/cmd/portico/app", true},
		{"test/e2e", "portico/cache", true},
		{"test/tracker", "portico/cmd/portico", false},
		{"cache", "portico/mapping/jsonblob", true},
		{"cache", "golang.org/x/sync/singleflight", true},
		{"proxy", "pgregory.net/rapid", false},
		{"cmd/portico", "github.com/unheard/of", false},
		{"cmd/portico", "go.opentelemetry.io/otel/sdk/trace", true},
		{"cmd/portico", "go.opentelemetry.io/otel/attribute", true},
		{"proxy", "go.opentelemetry.io/otel/trace", false},
		{"unlisted", "fmt", false},
	} {
		p := listedPackage{ImportPath: modulePath + tt.pkg, Imports: []string{tt.imported}}
		if wrong := checkImports(p, modules); (len(wrong) == 0) != tt.good {
			t.Errorf("%s imports %s: got %q", tt.pkg, tt.imported, wrong)
		}
	}
	p := listedPackage{ImportPath: "portico/proxy", TestImports: []string{"github.com/redis/go-redis/v9", "pgregory.net/rapid"}}
	if wrong := checkImports(p, modules); len(wrong) != 1 {
		t.Errorf("a test of proxy that imports go-redis and rapid: got %q", wrong)
	}
}

// modulePath is the module's own import path, with the slash behind it.
const modulePath = "portico/"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// root finds the top of the project.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("there is no go.mod above this folder")
	return ""
}

// read gives a file of the project by its path from the top.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	must(t, err)
	return string(text)
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
	must(t, err)
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
	must(t, err)
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
