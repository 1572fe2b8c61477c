package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/test/tracker"
	"portico/test/wire/facade"
	"portico/upstream"
	"portico/upstream/recording"
)

// requestOf returns a call of an operation with the smallest request.
func requestOf(t *testing.T, operation mapping.Operation) upstream.Call {
	t.Helper()
	call := upstream.Call{Operation: operation}
	switch operation {
	case mapping.OpFlagTypes:
		call.FlagTypes = &mapping.FlagTypesRequest{Product: "P", Component: "C"}
	case mapping.OpCreateFlagType:
		call.CreateFlagType = &mapping.FlagTypeCreate{}
	case mapping.OpUpdateFlagTypes:
		call.UpdateFlagTypes = &mapping.FlagTypeUpdate{IDs: []int64{1}}
	case mapping.OpBugAttachments:
		call.Attachments = &mapping.AttachmentsRequest{Bugs: []string{"1"}}
	case mapping.OpAttachment:
		call.Attachments = &mapping.AttachmentsRequest{Attachments: []string{"1"}}
	case mapping.OpCreateAttachment:
		call.CreateAttachment = &mapping.AttachmentCreate{Bugs: []string{"1"}}
	case mapping.OpUpdateAttachments:
		call.UpdateAttachments = &mapping.AttachmentUpdate{IDs: []int64{1}}
	default:
		t.Fatalf("%s has no request here", operation)
	}
	return call
}

// TestEveryOperationIsKnownEverywhere: the tables that say something of each operation have all of them. Those that are not
// exported are checked in their packages.
func TestEveryOperationIsKnownEverywhere(t *testing.T) {
	for _, operation := range mapping.Operations() {
		if operation.Title() == "" || operation.RPC() == "" { // without a method, calls of the older interfaces would pass uncopied
			t.Errorf("%s has no title or no method in the older interfaces", operation)
		}
		method, target := requestOf(t, operation).Line()
		if method != operation.Method() || strings.Count(target, "/") != strings.Count("/rest"+operation.Path(), "/") {
			t.Errorf("%s is asked for by %s %s, but its path is %s %s", operation, method, target, operation.Method(), operation.Path())
		}
		if found := recording.OperationOf(method, target); found != operation {
			t.Errorf("a recording takes %s %s for %q, want %s", method, target, found, operation)
		}
		if operation.IsWrite() == (operation.Method() == http.MethodGet) || operation.IsWrite() != (operation.Check() != "") {
			t.Errorf("%s is a write: %v, and its outcome is found out so: %q", operation, operation.IsWrite(), operation.Check())
		}
	}
}

// place is a function that does something else for some operations than for the others.
type place struct {
	// file is a file, or a folder where name is empty: all of its files.
	file, name string
	// writes says that only writes get there.
	writes bool
	// rest are the operations that it does not name, since what it does with all others is right for them.
	rest []mapping.Operation
}

// places are those of CONTRIBUTING.md, "Add an operation", whose packages have no test of their own that finds a forgotten operation. A new operation is
// named in each of them, or added to the rest here by one who has looked.
func places() []place {
	const (
		types, createType, updateTypes = mapping.OpFlagTypes, mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes
		list, get, attach, update      = mapping.OpBugAttachments, mapping.OpAttachment, mapping.OpCreateAttachment, mapping.OpUpdateAttachments
	)
	but := func(named ...mapping.Operation) []mapping.Operation {
		return slices.DeleteFunc([]mapping.Operation{types, createType, updateTypes, list, get, attach, update}, func(one mapping.Operation) bool { return slices.Contains(named, one) })
	}
	return []place{
		{"upstream/bugzilla/plan.go", "plan", false, nil},
		{"upstream/bugzilla/client.go", "Do", false, but(attach)},
		{"upstream/bugzilla/client.go", "complete", false, but(types, createType, attach)},
		{"upstream/bugzilla/rpc_operation.go", "read", true, but(attach)},
		{"upstream/bugzilla/rpc_operation.go", "choose", false, but(types, list, get, updateTypes)},
		{"upstream/bugzilla/rpc_reply.go", "Reply", false, but(createType)},
		{"proxy/rpc.go", "carryOutRPC", false, but(createType)},
		{"upstream/switchover/operations.go", "Do", false, but(types, list, get)},
		{"upstream/switchover/operations.go", "decideWrite", true, nil},
		{"upstream/switchover/operations.go", "FlagTypeWriters", true, but(createType, updateTypes)},
		{"upstream/switchover/writes.go", "record", true, but(attach)},
		{"upstream/switchover/writes.go", "newAttachments", true, but(attach)},
		{"upstream/switchover/idmap/operations.go", "call", false, but(createType, updateTypes, list, get, attach, update)},
		{"upstream/journal/operations.go", "objectsOf", true, nil},
		{"upstream/journal/operations.go", "decode", true, nil},
		{"upstream/canary/capture.go", "replyHead", false, but(list, get)},
		{"upstream/canary/writes/isolated.go", "TakePayload", true, but(attach)},
		{"upstream/canary/writes/touched.go", "keysOfWrite", true, nil},
		{"upstream/canary/writes/touched.go", "keysOfDifference", false, but(types, list, get)},
		{"upstream/canary/writes/touched.go", "Product", false, but(types, list, get, attach)},
		{"mapping/responses.go", "InterfaceForm", false, but(updateTypes, list, get, update)},
		{"cache/read.go", "Do", false, but(types, createType, updateTypes)},
		{"proxy/response.go", "succeed", false, but(types)},
		{"proxy/route.go", "lacks", true, but(createType, updateTypes)},
		{"proxy/body.go", "splitOptions", true, but(attach)},
		{"proxy/form.go", "add", true, but(attach)},
		{"upstream/upstreamtest", "", false, nil},
		{"test/fuzz/field.go", "Targets", true, nil},
		{"test/fuzz/field.go", "fields", true, nil},
	}
}

// TestEveryOperationHasItsPlaces: what is right for the operations that there are may be wrong for a new one, so it is said of each of them.
func TestEveryOperationHasItsPlaces(t *testing.T) {
	top := root(t)
	names := constants(t, top)
	for _, p := range places() {
		used := identifiers(t, top, p)
		for _, operation := range mapping.Operations() {
			if p.writes && !operation.IsWrite() {
				continue
			}
			field := fieldOf(t, operation)
			named := used[names[operation]] || used["call."+field] || used["read."+field] || used["write."+field]
			switch other := slices.Contains(p.rest, operation); {
			case named && other:
				t.Errorf("%s: %s names %s, which places has among the rest", p.file, p.name, operation)
			case !named && !other:
				t.Errorf("%s: %s does not name %s; add it there, or to the rest in places if what is done with all others is right", p.file, p.name, operation)
			}
		}
	}
}

// constants are the names of the constants in mapping, by the operations.
func constants(t *testing.T, top string) map[mapping.Operation]string {
	t.Helper()
	names := map[mapping.Operation]string{}
	ast.Inspect(parseSource(t, top, "mapping/operation.go", nil).file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				text, _ := strconv.Unquote(value.Value)
				names[mapping.Operation(text)] = spec.Names[0].Name
			}
		}
		return true
	})
	return names
}

// fieldOf is the field of a call that has the request of an operation.
func fieldOf(t *testing.T, operation mapping.Operation) string {
	t.Helper()
	call := reflect.ValueOf(requestOf(t, operation))
	for i := range call.NumField() {
		if field := call.Field(i); field.Kind() == reflect.Pointer && !field.IsNil() {
			return call.Type().Field(i).Name
		}
	}
	t.Fatalf("%s has no request", operation)
	return ""
}

// identifiers are those that occur in a place, and the members of calls.
func identifiers(t *testing.T, top string, p place) map[string]bool {
	t.Helper()
	files := []string{p.file}
	if p.name == "" {
		files, _ = filepath.Glob(filepath.Join(top, p.file, "*.go"))
	}
	used := map[string]bool{}
	for _, name := range files {
		for _, decl := range parseSource(t, top, strings.TrimPrefix(name, top+"/"), nil).file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && (p.name == "" || f.Name.Name == p.name) {
				collect(used, f.Body)
			}
		}
	}
	if len(used) == 0 {
		t.Errorf("%s has no function %s", p.file, p.name)
	}
	return used
}

func collect(used map[string]bool, body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			used[x.Name] = true
		case *ast.SelectorExpr:
			if of, ok := x.X.(*ast.Ident); ok && slices.Contains([]string{"call", "read", "write"}, of.Name) {
				used[of.Name+"."+x.Sel.Name] = true
			}
		}
		return true
	})
}

// TestEveryOperationIsDescribed for clients.
func TestEveryOperationIsDescribed(t *testing.T) {
	pages := map[string]func(mapping.Operation) []string{
		"proxy/admin/openapi.yaml": func(o mapping.Operation) []string { return []string{"operationId: " + string(o) + "\n"} },
		"docs/reference/interface.md": func(o mapping.Operation) []string {
			return []string{"\n(`" + string(o) + "`) `", "`" + o.Method() + " /rest" + strings.NewReplacer("{", "(", "}", ")").Replace(o.Path()) + "`"}
		},
		// Its rows have the number of its section in the interface. TestInterfaceCoverageIsComplete in test/e2e compares them with the tests.
		"docs/evidence/interface-coverage.md": func(o mapping.Operation) []string {
			return []string{fmt.Sprintf("\n| %d. ", 1+slices.Index(mapping.Operations(), o))}
		},
	}
	for page, wanted := range pages {
		text := read(t, page)
		for _, operation := range mapping.Operations() {
			for _, want := range wanted(operation) {
				if !strings.Contains(text, want) {
					t.Errorf("%s does not describe %s: it has no %s", page, operation, want)
				}
			}
		}
	}
}

// TestEveryDialectIsKnownEverywhere: a dialect has a value of the configuration, a reference tracker, recordings, and its place on the pages.
func TestEveryDialectIsKnownEverywhere(t *testing.T) {
	field, _ := reflect.TypeFor[config.Tracker]().FieldByName("Dialect")
	values := []string{"auto"}
	for _, dialect := range mapping.Dialects() {
		name := dialect.Name
		values = append(values, name)
		if found, ok := mapping.DialectNamed(name); !ok || found.Name != name {
			t.Errorf("DialectNamed does not find %s", name)
		}
		if !slices.Contains(tracker.Dialects(), name) {
			t.Errorf("the reference tracker cannot be one of %s", name)
		}
		if !slices.ContainsFunc(facade.Trackers(), func(recorded facade.Tracker) bool { return recorded.Dialect == name }) {
			t.Errorf("no recordings of %s are compared in test/wire/facade", name)
		}
		for _, page := range []string{"config.example.yaml", "docs/reference/glossary.md", "docs/divergences.md"} {
			if !strings.Contains(read(t, page), name) {
				t.Errorf("%s does not name the dialect %s", page, name)
			}
		}
	}
	if got := strings.Split(field.Tag.Get("oneof"), "|"); !slices.Equal(got, values) {
		t.Errorf("the configuration takes %q as dialect, want %q", got, values)
	}
}
