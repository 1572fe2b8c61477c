package tracker_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/test/tracker"
)

// TestBMO checks the rows of tracker-behaviour.md section 9 about BMO.
func TestBMO(t *testing.T) {
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO})
	f.must("GET", "/rest/version", "").want(t, "20260820.1", "version")
	f.must("GET", "/rest/flag_types/TestProduct/Component%20A", "").want(t, "granted", "attachment", 0, "name")
	f.must("GET", "/rest/flag_type/TestProduct", "").fails(t, 404, "32614")
	f.must("POST", "/rest/flag_type?"+editorKey, `{"name":"x","description":"d"}`).fails(t, 404, "32614")
	header := "X-BUGZILLA-API-KEY: DevKey0000000000000000000000000000000000"
	f.must("GET", "/rest/whoami", "", header).want(t, "dev@example.com", "name")
	f.must("GET", "/rest/whoami", "", "Authorization: Bearer DevKey0000000000000000000000000000000000").fails(t, 401, "410")
	f.must("GET", "/rest/whoami", "").fails(t, 401, "410")
	f.must("GET", "/rest/whoami", "", "X-BUGZILLA-API-KEY: ").fails(t, 401, "410")
	made := f.must("POST", "/rest/bug/7/attachment", patch, header)
	made.want(t, "f.patch", "attachments", "16", "file_name")
	if made.status != 201 || !strings.Contains(made.raw, `"data":"LS0tCg=="`) {
		t.Errorf("create: %d %s", made.status, made.raw)
	}
	read := f.must("GET", "/rest/bug/attachment/16", "", "Accept: text/html")
	read.want(t, "dev@example.com", "attachments", "16", "attacher")
	read.want(t, "s", "attachments", "16", "description")
	f.must("PUT", "/rest/bug/attachment/16", `{"ids":[[16]],"summary":"x"}`, header).fails(t, 400, "32000")
	f.must("PUT", "/rest/bug/attachment/16", `{"bug_flags":[],"summary":"x"}`, header).want(t, "x", "attachments", 0, "changes", "summary", "added")
}

func TestHeaderCredentialsAreIgnoredByBugzilla5(t *testing.T) {
	f := start(t, tracker.Options{Version: "5.0.4.1+"})
	f.must("GET", "/rest/version", "").want(t, "5.0.4.1+", "version")
	f.must("POST", "/rest/bug/7/attachment", patch, "X-BUGZILLA-API-KEY: DevKey0000000000000000000000000000000000").fails(t, 401, "410")
}

func TestSlashModes(t *testing.T) {
	const encoded = "/rest/flag_type/TestProduct/comp%2Fslash"
	if a := start(t, tracker.Options{}).must("GET", encoded, ""); a.status != 404 || a.body != nil {
		t.Errorf("refused: %d %s", a.status, a.raw)
	}
	start(t, tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkSlashOn}}).must("GET", encoded, "").fails(t, 404, "32614")
	start(t, tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkSlashNoDecode}}).must("GET", encoded, "").fails(t, 404, "51")
	start(t, tracker.Options{}).must("GET", "/rest/flag_type/TestProduct?component=comp/slash", "").want(t, "excprod", "bug", 0, "name")
}

func TestParams(t *testing.T) {
	f := start(t, tracker.Options{Params: tracker.Params{MaxAttachmentSize: 2}, Quirks: []tracker.Quirk{tracker.QuirkRequireLogin, tracker.QuirkEmailFilter}})
	f.must("GET", "/rest/bug/1", "").fails(t, 401, "410")
	if a := f.must("GET", "/rest/version", ""); a.status != 200 {
		t.Errorf("version: %d", a.status)
	}
	big := `{"data":"` + strings.Repeat("YWFh", 700) + `","file_name":"f","summary":"s","content_type":"text/plain"}`
	f.must("POST", "/rest/bug/7/attachment?"+devKey, big).fails(t, 400, "600")
	g := start(t, tracker.Options{Params: tracker.Params{NoInsiderGroup: true}, Quirks: []tracker.Quirk{tracker.QuirkEmailFilter}})
	g.must("GET", "/rest/bug/attachment/2?"+insiderKey, "").fails(t, 401, "304")
	g.must("GET", "/rest/bug/attachment/1?include_fields=creator", "").want(t, "dev", "attachments", "1", "creator")
	g.must("GET", "/rest/bug/attachment/1?include_fields=creator&"+devKey, "").want(t, "dev@example.com", "attachments", "1", "creator")
}

// TestDemo: the demo is usable as it is, and its keys are as long as real ones.
func TestDemo(t *testing.T) {
	f := start(t, tracker.Options{Seed: tracker.SeedDemo})
	keys := tracker.Keys(tracker.SeedDemo)
	if key := keys["editor@demo.example"]; len(key) != 40 || !strings.HasPrefix(key, "DemoeditorKey") {
		t.Errorf("the editor's key is %q", key)
	}
	f.must("GET", "/rest/flag_type/WebShop?component=Search/Ranking", "").want(t, "ranking-impact", "bug", 3, "name")
	f.must("GET", "/rest/flag_type/Internal%20Tools", "").fails(t, 401, "106")
	f.must("POST", "/rest/flag_type?api_key="+keys["editor@demo.example"], `{"name":"docs","description":"d"}`).want(t, "11", "id")
	f.must("GET", "/rest/bug/lost-basket/attachment", "").want(t, "reviewer@demo.example", "bugs", "1", 0, "flags", 0, "requestee")
	f.must("POST", "/rest/bug/3/attachment?api_key="+keys["ci-bot@demo.example"], patch).want(t, "9", "ids", 0)
	if bugs := f.must("GET", "/rest/bug?api_key="+keys["developer@demo.example"], "").at(t, "bugs").([]any); len(bugs) != 12 {
		t.Errorf("staff see %d bugs, want 12", len(bugs))
	}
}

// TestProductFlagTypes reads the flag types of products by /rest/product, the only way to products with a slash in their name.
func TestProductFlagTypes(t *testing.T) {
	const slash = "/rest/product?names=Product/With/Slash&include_fields=components.flag_types"
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO})
	read := f.must("GET", slash, "")
	read.want(t, "slashonly", "products", 0, "components", 0, "flag_types", "bug", 0, "name")
	if product := read.at(t, "products", 0).(map[string]any); len(product) != 1 {
		t.Errorf("the product has more than its components: %v", product)
	}
	const unicode = "/rest/product?names=%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC&include_fields=name"
	f.must("GET", unicode, "").want(t, "100500", "code")
	f = start(t, tracker.Options{Dialect: tracker.DialectHarmony})
	f.must("GET", unicode, "").want(t, "Ünïcode 日本", "products", 0, "name")
}

// TestHarmony checks what Harmony has and BMO has not.
func TestHarmony(t *testing.T) {
	f := start(t, tracker.Options{Dialect: tracker.DialectHarmony})
	const key = "AdminKey00000000000000000000000000000000"
	call := func(method string) answer {
		return f.must("POST", "/jsonrpc.cgi", `{"id":1,"method":"`+method+`","params":[{"product":"TestProduct"}]}`)
	}
	call("Bugzilla.version").want(t, "20200805.1", "result", "version")
	call("FlagType.get").want(t, nil, "result")
	f.must("GET", "/rest/flag_types/TestProduct/none", "").fails(t, 400, "51")
	f.must("GET", "/rest/whoami?"+devKey, "", "X-BUGZILLA-API-KEY: "+key).want(t, "dev@example.com", "name")
	bmo := start(t, tracker.Options{Dialect: tracker.DialectBMO})
	bmo.must("GET", "/rest/whoami?"+devKey, "", "X-BUGZILLA-API-KEY: "+key).want(t, "admin@example.com", "name")
	bmo.must("GET", "/rest/flag_types/TestProduct/none", "").fails(t, 404, "51")
	if a := bmo.must("POST", "/jsonrpc.cgi", `{"id":1,"method":"Bugzilla.version"}`); a.status != 404 {
		t.Errorf("JSON-RPC on BMO: %d %s", a.status, a.raw)
	}
}

// TestFramingOfBMO: every dynamic response ends with the connection and has no length.
func TestFramingOfBMO(t *testing.T) {
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO})
	req, err := http.NewRequestWithContext(t.Context(), "PUT", f.url+"/rest/bug/attachment/1?"+devKey, struct{ io.Reader }{strings.NewReader(`{"summary":"chunked"}`)})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !resp.Close || resp.ContentLength != -1 || len(resp.TransferEncoding) > 0 || !strings.Contains(string(body), "chunked") {
		t.Errorf("%v, close %v, length %d, %v: %s", err, resp.Close, resp.ContentLength, resp.TransferEncoding, body)
	}
}
