package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"portico/test/process"
	"portico/test/wire"
)

// description is a file in the form of OpenAPI.
type description struct {
	OpenAPI    string
	Paths      map[string]pathItem
	Components struct {
		Responses map[string]response
		Schemas   map[string]any
	}

	name    string
	schemas *jsonschema.Compiler
}

type (
	pathItem struct {
		Parameters             []parameter
		Get, Post, Put, Delete *operation
	}
	operation struct {
		OperationID string `yaml:"operationId"`
		Parameters  []parameter
		RequestBody struct{ Content content } `yaml:"requestBody"`
		Responses   map[string]response
	}
	parameter struct {
		Name, In string
		Ref      string `yaml:"$ref"`
	}
	response struct {
		Ref     string `yaml:"$ref"`
		Content content
	}
	content map[string]struct {
		Schema struct {
			Ref string `yaml:"$ref"`
		}
	}
)

// methods are the operations of a path by method.
func (p pathItem) methods() map[string]*operation {
	all := map[string]*operation{http.MethodGet: p.Get, http.MethodPost: p.Post, http.MethodPut: p.Put, http.MethodDelete: p.Delete}
	maps.DeleteFunc(all, func(_ string, o *operation) bool { return o == nil })
	return all
}

// describe reads a description as docs/reference shows it.
func describe(t *testing.T, name string) *description {
	t.Helper()
	text := read(t, "../../docs/reference/"+name)
	d := &description{name: name, schemas: jsonschema.NewCompiler()}
	must(t, yaml.Unmarshal([]byte(text), d))
	var plain any
	must(t, yaml.Unmarshal([]byte(text), &plain))
	document, err := json.Marshal(plain)
	must(t, err)
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	must(t, err)
	d.schemas.AssertFormat()
	must(t, d.schemas.AddResource("https://portico.invalid/"+name, resource))
	return d
}

// check validates a value against a schema of the description.
func (d *description) check(ref string, body []byte) error {
	schema, err := d.schemas.Compile("https://portico.invalid/" + d.name + ref)
	if err != nil {
		return fmt.Errorf("compile %s: %w", ref, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s is no JSON: %w", ref, err)
	}
	return schema.Validate(value)
}

// response is that of a status, and whether the operation names the status itself.
func (d *description) response(o *operation, status int) (r response, named bool) {
	r, named = o.Responses[strconv.Itoa(status)]
	if !named {
		r = o.Responses["default"]
	}
	if name, isReference := strings.CutPrefix(r.Ref, "#/components/responses/"); isReference {
		r = d.Components.Responses[name]
	}
	return r, named
}

// TestDescriptionsAreWellFormed: schemas compile, references lead somewhere, ids are unique, and parameters of paths are declared.
func TestDescriptionsAreWellFormed(t *testing.T) {
	inPath := regexp.MustCompile(`\{(\w+)\}`)
	for _, name := range []string{"openapi.yaml", "openapi-admin.yaml"} {
		d := describe(t, name)
		if d.OpenAPI != "3.1.0" {
			t.Errorf("%s is of version %s", name, d.OpenAPI)
		}
		for schema := range d.Components.Schemas {
			if _, err := d.schemas.Compile("https://portico.invalid/" + name + "#/components/schemas/" + schema); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		var document map[string]any
		must(t, yaml.Unmarshal([]byte(read(t, "../../docs/reference/"+name)), &document))
		for _, match := range regexp.MustCompile(`\$ref: "#/([^"]+)"`).FindAllStringSubmatch(read(t, "../../docs/reference/"+name), -1) {
			var at any = document
			for part := range strings.SplitSeq(match[1], "/") {
				object, _ := at.(map[string]any)
				at = object[part]
			}
			if at == nil {
				t.Errorf("%s: nothing is at #/%s", name, match[1])
			}
		}
		ids := map[string]bool{}
		for path, item := range d.Paths {
			for method, o := range item.methods() {
				if ids[o.OperationID] || o.OperationID == "" || len(o.Responses) == 0 {
					t.Errorf("%s: %s %s has the id %q and %d responses", name, method, path, o.OperationID, len(o.Responses))
				}
				ids[o.OperationID] = true
				for _, match := range inPath.FindAllStringSubmatch(path, -1) {
					if !slices.Contains(append(item.Parameters, o.Parameters...), parameter{Name: match[1], In: "path"}) {
						t.Errorf("%s: %s %s does not declare %s", name, method, path, match[1])
					}
				}
			}
		}
	}
}

// template finds the path of a description that a request is for: of several the longest.
func (d *description) template(path string) string {
	for _, candidate := range slices.Backward(slices.SortedFunc(maps.Keys(d.Paths), func(a, b string) int { return len(a) - len(b) })) {
		pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(candidate), "[^/]+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			return candidate
		}
	}
	return ""
}

// TestRecordedResponsesFit: responses of real trackers with a status that the description names fit its schema.
func TestRecordedResponsesFit(t *testing.T) {
	t.Parallel()
	d := describe(t, "openapi.yaml")
	fits := map[string]int{}
	for _, file := range []string{"bugzilla-5.2", "bmo", "harmony"} {
		exchanges, err := wire.Load("../wire/testdata/" + file + ".jsonl")
		must(t, err)
		for _, e := range exchanges {
			if e.Response == nil || e.Response.HTML || !json.Valid(e.Response.Body) {
				continue
			}
			path, _, _ := strings.Cut(e.Request.Path, "?")
			o := d.Paths[d.template(strings.Replace(path, "/flag_types/", "/flag_type/", 1))].methods()[e.Request.Method]
			if o == nil {
				continue
			}
			r, named := d.response(o, e.Response.Status)
			schema := r.Content["application/json"].Schema.Ref
			var failed struct{ Error any }
			isObject := json.Unmarshal([]byte(e.Response.Body), &failed) == nil
			// Portico makes a 4xx of an error with a status of success, an error of its own of a page, and ids of the reply of bmo to a create.
			translated := file != "bugzilla-5.2" && o.OperationID == "attachment.create" && e.Response.Status == http.StatusCreated
			if !named || schema == "" || !isObject || translated || failed.Error != nil && e.Response.Status < 300 {
				continue
			}
			fits[o.OperationID+" "+strconv.Itoa(e.Response.Status)]++
			if err := d.check(schema, []byte(e.Response.Body)); err != nil {
				t.Errorf("%s %s: %v", file, e.Name, err)
			}
		}
	}
	t.Log(fits)
	for _, want := range []string{"flag_type.get 200", "flag_type.get.component 200", "flag_type.create 201", "flag_type.update 200", "attachment.list 200",
		"attachment.get 200", "attachment.create 201", "attachment.update 200", "attachment.create 400", "flag_type.get.component 404", "attachment.get 401"} {
		if fits[want] < 3 {
			t.Errorf("only %d recorded responses are of %s", fits[want], want)
		}
	}
}

// exchange sends a request and checks the response against the description.
func (d *description) exchange(t *testing.T, base, method, target, body string) (status int, text []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, base+target, strings.NewReader(body))
	must(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	must(t, err)
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	path, _, _ := strings.Cut(target, "?")
	item := d.Paths[path]
	if item.methods()[method] == nil {
		item = d.Paths[d.template(path)]
	}
	o := item.methods()[method]
	if o == nil {
		t.Fatalf("%s describes no %s %s", d.name, method, target)
	}
	r, named := d.response(o, answer.StatusCode)
	if !named {
		t.Errorf("%s %s: the status %d is not described: %s", method, target, answer.StatusCode, text)
		return answer.StatusCode, text
	}
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	form, known := r.Content[kind]
	if _, anything := r.Content["*/*"]; anything {
		known = true
	}
	if !known {
		t.Errorf("%s %s: %d has the type %q, described are %v", method, target, answer.StatusCode, kind, slices.Collect(maps.Keys(r.Content)))
	} else if kind == "application/json" {
		if err := d.check(form.Schema.Ref, text); err != nil {
			t.Errorf("%s %s: %d: %v\n%s", method, target, answer.StatusCode, err, text)
		}
	}
	return answer.StatusCode, text
}

// demo runs the demo with its planted differences.
func demo(t *testing.T) (clients, operators string) {
	t.Helper()
	clients, operators = process.FreeAddress(t), process.FreeAddress(t)
	process.Launch(t, process.Spec{
		Program: process.Portico(t), Fails: true,
		Args:  []string{"demo", "--drive", "40", "--stay", "--listen", clients, "--admin-listen", operators},
		Ready: func(*process.Process) bool { return process.Listens(clients) && process.Listens(operators) },
	})
	return "http://" + clients, "http://" + operators
}

// TestEveryDescribedOperationHasAHandler makes requests of both descriptions to a running demo, and checks the responses.
func TestEveryDescribedOperationHasAHandler(t *testing.T) {
	t.Parallel()
	clients, operators := demo(t)
	d := describe(t, "openapi-admin.yaml")
	done := map[string]bool{}
	ask := func(base, method, target, body string, want int) (text []byte) {
		t.Helper()
		path, _, _ := strings.Cut(target, "?")
		if d.Paths[path].methods()[method] == nil {
			path = d.template(path)
		}
		done[method+" "+path] = true
		status, text := d.exchange(t, base, method, target, body)
		if want != 0 && status != want {
			t.Errorf("%s %s: %d, want %d: %s", method, target, status, want, text)
		}
		return text
	}
	var findings struct{ Findings []struct{ Signature string } }
	process.Eventually(t, "there are findings", func() bool {
		text := ask(operators, http.MethodGet, "/canary/findings.json", "", http.StatusOK)
		return json.Unmarshal(text, &findings) == nil && len(findings.Findings) > 0
	})
	finding := "/canary/findings/" + url.PathEscape(findings.Findings[0].Signature)
	const signed = `{"actor": "an operator", "reason": "a test"}`
	for path, item := range d.Paths {
		if item.Get != nil && !strings.Contains(path, "{") {
			ask(operators, http.MethodGet, path, "", 0)
		}
	}
	ask(operators, http.MethodGet, "/cache?product=Demo", "", http.StatusOK)
	ask(operators, http.MethodGet, finding, "", http.StatusOK)
	ask(operators, http.MethodGet, finding+".json", "", http.StatusOK)
	ask(operators, http.MethodPost, finding+"/accept", signed, http.StatusOK)
	ask(operators, http.MethodPost, finding+"/accept", `{}`, http.StatusUnprocessableEntity)
	ask(operators, http.MethodPost, "/canary/findings/absent/fixed", signed, http.StatusNotFound)
	ask(operators, http.MethodPost, "/canary/judgements/fixed", signed, http.StatusUnprocessableEntity)
	ask(operators, http.MethodPost, "/canary/gate", "", 0)
	ask(operators, http.MethodPost, "/canary/sampling", `{"default": 0.5}`, http.StatusOK)
	ask(operators, http.MethodPost, "/canary/sampling", `{"default": 5}`, http.StatusUnprocessableEntity)
	ask(operators, http.MethodPost, "/canary/reset", signed, http.StatusOK)
	ask(operators, http.MethodPost, "/switchover/kill", signed, http.StatusOK)
	ask(operators, http.MethodPost, "/switchover/revive", signed, http.StatusOK)
	ask(operators, http.MethodPost, "/switchover/rules", `{"version": 1, "actor": "a", "reason": "b", "table": {"rules": []}}`, 0)
	ask(operators, http.MethodPost, "/switchover/advance", `{"rule": "no-such-rule", "dry_run": true}`, http.StatusUnprocessableEntity)
	ask(operators, http.MethodPost, "/switchover/reverse", `{"rule": "no-such-rule", "dry_run": true}`, http.StatusUnprocessableEntity)
	ask(operators, http.MethodGet, "/journal/1", "", 0)
	for _, verb := range []string{"retry", "skip", "park"} {
		ask(operators, http.MethodPost, "/journal/1/"+verb, signed, 0)
	}
	ask(operators, http.MethodPost, "/cache/purge?product=Demo", "", http.StatusOK)
	ask(operators, http.MethodPost, "/cache/purge?nonsense=1", "", http.StatusBadRequest)
	for path, item := range d.Paths {
		for method := range item.methods() {
			if !done[method+" "+path] {
				t.Errorf("%s %s was not tried", method, path)
			}
		}
	}

	d = describe(t, "openapi.yaml")
	for path, item := range d.Paths {
		for method := range item.methods() {
			target := strings.NewReplacer("{bug_id}", "1", "{attachment_id}", "1").Replace(path)
			status, text := d.exchange(t, clients, method, regexp.MustCompile(`\{\w+\}`).ReplaceAllString(target, "absent"), body(method))
			if status == http.StatusMethodNotAllowed || bytes.Contains(text, []byte("32614")) {
				t.Errorf("%s %s has no handler: %d %s", method, path, status, text)
			}
		}
	}
}

func body(method string) string {
	if method == http.MethodGet {
		return ""
	}
	return "{}"
}

// TestEveryRouteOfOperatorsIsDescribed finds the patterns of the admin listener in its source.
func TestEveryRouteOfOperatorsIsDescribed(t *testing.T) {
	d := describe(t, "openapi-admin.yaml")
	pattern := regexp.MustCompile(`"(GET|POST) (/[^"]*)"`)
	found := 0
	for _, folder := range []string{"../../proxy/admin", "../../proxy/admin/pages"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		must(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			must(t, err)
			for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
				path := strings.TrimSuffix(match[2], "{$}")
				if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(path, "/debug/") {
					continue
				}
				found++
				if d.Paths[path].methods()[match[1]] == nil {
					t.Errorf("%s has the route %s %s, which openapi-admin.yaml does not describe", filepath.Base(file), match[1], path)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d routes were found", found)
	}
}
