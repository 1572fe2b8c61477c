package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// anything marks a room that may import every other one.
const anything = "*"

// rooms says for each room of the module which others it may import, the first
// pattern that matches counts. It says what depguard in .golangci.yml says; a
// change belongs in both.
var rooms = []struct {
	room string
	may  []string
}{
	{"mapping", nil},
	{"upstream", []string{"mapping"}},
	// The mechanics are worn inside the client of one tracker.
	{"upstream/bugzilla", []string{"mapping", "upstream", "upstream/transport"}},
	// What survives a restart is kept by state, and what is compared by canary.
	{"upstream/canary", []string{"mapping", "upstream", "upstream/state"}},
	{"upstream/switchover", []string{"mapping", "upstream", "upstream/state"}},
	{"upstream/recording", []string{"mapping", "upstream", "upstream/canary", "upstream/state"}},
	{"upstream/*", []string{"mapping", "upstream"}},
	{"cache", []string{"mapping", "upstream"}},
	{"proxy", []string{"mapping", "upstream"}},
	{"proxy/admin", []string{"mapping", "upstream", "proxy"}},
	{"proxy/admin/pages", []string{"mapping", "upstream/canary", "upstream/state", "upstream/switchover", "proxy/admin"}},
	{"cmd/*", []string{anything}},
	{"test/...", []string{anything}},
}

// thirdParty says for each foreign module which rooms may import it. A module
// that is missing here has no room yet.
var thirdParty = []struct {
	module string
	rooms  []string
}{
	{"github.com/julienschmidt/httprouter", []string{"proxy"}},
	{"github.com/go-resty/resty/v2", []string{"upstream/bugzilla"}},
	{"github.com/sony/gobreaker/v2", []string{"upstream/transport"}},
	{"github.com/redis/go-redis/v9", []string{"cache"}},
	{"github.com/alicebob/miniredis/v2", []string{"cache", "test/..."}},
	{"github.com/maypok86/otter/v2", []string{"cache"}},
	{"modernc.org/sqlite", []string{"upstream/state"}},
	{"github.com/jackc/pgx/v5", []string{"upstream/state"}},
	{"go.yaml.in/yaml/v3", []string{"cmd/portico"}},
	{"github.com/prometheus/client_golang", []string{"proxy/admin"}},
	{"go.opentelemetry.io/otel", []string{"cmd/portico"}},
	{"go.opentelemetry.io/otel/*", []string{"cmd/portico"}},
	{"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp", []string{"cmd/portico"}},
	// No weight: they stand in for a part of the standard library.
	{"github.com/go-json-experiment/json", []string{anything}},
	{"golang.org/x/*", []string{anything}},
	// Tests are not in this table, so a room here would be a mistake.
	{"pgregory.net/rapid", nil},
	{"go.uber.org/goleak", nil},
	{"go.opentelemetry.io/proto/otlp", nil},
}

// standard says the same of parts of the standard library.
var standard = []struct {
	pkg   string
	rooms []string
}{
	{"database/sql", []string{"upstream/state"}},
	{"testing", []string{"upstream/upstreamtest", "test/..."}},
	{"net/http/httptest", []string{"upstream/upstreamtest", "test/..."}},
}

// forbiddenInTests are modules that tests outside their rooms have no business
// with either: a test that opens the tracker's client or the router has left its
// room.
var forbiddenInTests = []string{
	"github.com/julienschmidt/httprouter", "github.com/go-resty/resty/v2", "github.com/sony/gobreaker/v2",
	"github.com/redis/go-redis/v9", "modernc.org/sqlite", "github.com/jackc/pgx/v5",
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/sdk",
}

// matches reports whether a room is in a list of patterns. As for the go command,
// a pattern that ends in /... means all below.
func matches(room string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if below, ok := strings.CutSuffix(p, "/..."); ok {
			return strings.HasPrefix(room, below+"/")
		}
		ok, err := path.Match(p, room)
		return p == anything || err == nil && ok
	})
}

// checkImports returns what is wrong with the imports of one package of the
// module. Modules tells the module of a foreign package.
func checkImports(p listedPackage, modules map[string]string) []string {
	i := slices.IndexFunc(rooms, func(r struct {
		room string
		may  []string
	}) bool {
		return matches(p.room(), []string{r.room})
	})
	if i < 0 {
		return []string{p.ImportPath + " is in none of the rooms of DESIGN.md, section 2"}
	}
	var wrong []string
	for _, imported := range p.Imports {
		if reason := checkImport(p.room(), rooms[i].may, imported, modules[imported]); reason != "" {
			wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, reason))
		}
	}
	for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
		if slices.Contains(forbiddenInTests, modules[imported]) && !allowed(p.room(), modules[imported]) && !matches(p.room(), []string{"test/..."}) {
			wrong = append(wrong, fmt.Sprintf("the tests of %s import %s, which has a room of its own", p.ImportPath, imported))
		}
	}
	return wrong
}

// checkImport returns why a room may not import a package, or nothing.
func checkImport(room string, may []string, imported, module string) string {
	if target, own := strings.CutPrefix(imported, modulePath); own {
		switch {
		case strings.HasPrefix(target, "cmd/"):
			return "nobody imports the program"
		case strings.HasPrefix(target, "test/") && !matches(room, []string{"cmd/*", "test/..."}):
			return "only cmd and tests import test/*"
		case !matches(target, may):
			return "imports run cmd -> proxy -> upstream -> mapping"
		}
		return ""
	}
	for _, s := range standard {
		if s.pkg == imported && !matches(room, s.rooms) {
			return "its room is " + strings.Join(s.rooms, ", ")
		}
	}
	if module != "" && !allowed(room, module) {
		return "its room is elsewhere, or it has none in test/arch/imports_test.go"
	}
	return ""
}

// allowed reports whether a room may import a foreign module.
func allowed(room, module string) bool {
	for _, t := range thirdParty {
		if ok, err := path.Match(t.module, module); err == nil && ok {
			return matches(room, t.rooms)
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
		"github.com/go-resty/resty/v2":   "github.com/go-resty/resty/v2",
		"github.com/unheard/of":          "github.com/unheard/of",
		"golang.org/x/sync/singleflight": "golang.org/x/sync",
		"modernc.org/sqlite":             "modernc.org/sqlite",
		"pgregory.net/rapid":             "pgregory.net/rapid",

		"go.opentelemetry.io/otel/attribute":              "go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/sdk/trace":              "go.opentelemetry.io/otel/sdk",
		"go.opentelemetry.io/otel/trace":                  "go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/proto/otlp/collector/metric": "go.opentelemetry.io/proto/otlp",
	}
	for _, tt := range []struct {
		room, imported string
		good           bool
	}{
		{"mapping", "portico/upstream", false},
		{"mapping", "encoding/base64", true},
		{"upstream", "portico/mapping", true},
		{"upstream", "portico/cache", false},
		{"upstream/bugzilla", "portico/upstream/transport", true},
		{"upstream/canary", "portico/upstream/transport", false},
		{"upstream/canary", "database/sql", false},
		{"upstream/canary", "portico/upstream/state", true},
		{"upstream/canary", "portico/upstream/switchover", false},
		{"upstream/switchover", "portico/upstream/canary", false},
		{"upstream/recording", "portico/upstream/canary", true},
		{"upstream/state", "portico/upstream/canary", false},
		{"upstream/state", "database/sql", true},
		{"upstream/state", "modernc.org/sqlite", true},
		{"upstream/canary", "modernc.org/sqlite", false},
		{"proxy/admin/pages", "portico/upstream/canary", true},
		{"proxy/admin/pages", "portico/proxy/admin", true},
		{"proxy/admin/pages", "portico/proxy", false},
		{"proxy/admin/pages", "portico/cache", false},
		{"cache", "portico/proxy", false},
		{"cache", "github.com/redis/go-redis/v9", true},
		{"cache", "golang.org/x/sync/singleflight", true},
		{"proxy", "github.com/redis/go-redis/v9", false},
		{"proxy", "portico/test/tracker", false},
		{"proxy", "testing", false},
		{"proxy/admin", "portico/proxy", true},
		{"proxy", "pgregory.net/rapid", false},
		{"cmd/portico", "portico/test/tracker", true},
		{"cmd/portico", "github.com/go-resty/resty/v2", false},
		{"cmd/portico", "github.com/unheard/of", false},
		{"cmd/portico", "go.opentelemetry.io/otel/sdk/trace", true},
		{"cmd/portico", "go.opentelemetry.io/otel/attribute", true},
		{"cmd/portico", "go.opentelemetry.io/proto/otlp/collector/metric", false},
		{"proxy", "go.opentelemetry.io/otel/trace", false},
		{"upstream/transport", "go.opentelemetry.io/otel/attribute", false},
		{"test/tracker", "portico/cmd/portico", false},
		{"test/e2e", "portico/cache", true},
		{"test/wire/facade", "portico/test/wire", true},
		{"upstream/state/sql", "portico/upstream", false},
		{"attic", "fmt", false},
	} {
		p := listedPackage{ImportPath: modulePath + tt.room, Imports: []string{tt.imported}}
		if wrong := checkImports(p, modules); (len(wrong) == 0) != tt.good {
			t.Errorf("%s imports %s: got %q", tt.room, tt.imported, wrong)
		}
	}
	p := listedPackage{ImportPath: "portico/proxy", TestImports: []string{"github.com/redis/go-redis/v9", "pgregory.net/rapid"}}
	if wrong := checkImports(p, modules); len(wrong) != 1 {
		t.Errorf("a test of proxy that imports go-redis and rapid: got %q", wrong)
	}
}
