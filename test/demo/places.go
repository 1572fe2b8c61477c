package demo

import (
	"embed"
	"fmt"
	"net/http"
	"strings"

	"portico/proxy/admin"
	"portico/proxy/admin/view"
	"portico/test/tracker"
)

// Places are the base URLs of a running demo.
type Places struct {
	Clients, Operators, Primary, Candidate string
	// Same says that no difference is planted.
	Same bool
}

// Key returns the API key of a user of the demo; user is the part of the login before the @.
func Key(user string) string { return tracker.Keys(tracker.SeedDemo)[user+"@demo.example"] }

// Introduction says what is running, where, and what is planted.
func (p Places) Introduction() string {
	var b strings.Builder
	fmt.Fprintf(&b, `Portico is at %s, where clients send requests,
its admin page at %s, where operators see what goes on.
Two reference trackers with made-up data are behind it: main at %s serves clients,
and candidate at %s may replace it. Portico sends each read to both and
compares the responses: %[2]s/canary shows the result.
`, p.Clients, p.Operators, p.Primary, p.Candidate)
	if p.Same {
		b.WriteString("\nNo difference is planted.\n")
		return b.String()
	}
	planted := Planted()
	fmt.Fprintf(&b, "\n%d differences are planted for the comparison to find:\n", len(planted))
	for _, d := range planted {
		fmt.Fprintf(&b, "  %-18s  %s: %s\n", d.Quirk, d.What, d.Why)
	}
	return b.String()
}

// Tour is a shell script of what can be tried. All of it works as it stands.
func (p Places) Tour() string {
	return fmt.Sprintf(`# flag types of a product, twice: the second response comes from the cache
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status

# a component with a slash in its name, which the tracker itself refuses
curl -s %[3]s/rest/flag_type/WebShop/Search%%2FRanking | head -c 100; echo
curl -s %[1]s/rest/flag_type/WebShop/Search%%2FRanking; echo

# a flag type with a list of addresses, an object of components, and a key in a header
curl -s -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"name":"qa","description":"checked","cc_list":["qa@example.com"],"inclusions":{"WebShop":["Search/Ranking"]}}'; echo

# an attachment, and what became of it
curl -s -X POST %[1]s/rest/bug/1/attachment -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"ids":[1,2],"data":"aGVsbG8K","file_name":"hello.txt","summary":"hello","content_type":"text/plain"}'; echo
curl -s '%[1]s/rest/bug/1/attachment?include_fields=id,file_name,data'; echo

# something that cannot be right is refused before the tracker sees it
curl -si -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' -d '{"name":"qa","description":"d","sortkey":0}'; echo

# what an operator sees
curl -s %[2]s/status

# what the comparison of both trackers has found by now, and what it makes of it;
# portico canary report and portico canary verdict print the same
sleep 2
curl -s %[2]s/canary/report.txt
curl -s %[2]s/canary/verdict.json
curl -s %[2]s/switchover/status.json
`, p.Clients, p.Operators, p.Primary, Key("editor"))
}

//go:embed html
var files embed.FS

// Page shows the introduction and the tour at /demo, as they are when it is read.
func (p *Places) Page() admin.Page {
	templates := view.New(files, nil)
	return admin.Page{Path: "/demo", Title: "Demo", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admin.Show(w, r, admin.Sheet{Title: "Demo", Templates: templates, Body: "demo.html", Data: struct{ Introduction, Tour string }{p.Introduction(), p.Tour()}})
	})}
}
