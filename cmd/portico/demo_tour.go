package main

import (
	"fmt"
	"io"
)

// printTour prints what can be tried. All of it works as it stands.
func printTour(w io.Writer, behind *demoTrackers, p *program) {
	clients, operators := address(p.listeners[0]), address(p.listeners[1])
	fmt.Fprintf(w, `Portico is at %[1]s, its operators' side at %[2]s,
and behind it a reference tracker at %[3]s. A second one that differs from it,
at %[5]s, is asked the same, and %[2]s/canary shows what differs.
Try, in another terminal:

# flag types of a product, twice: the second answer comes from the cache
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status

# a component with a slash in its name, which the tracker itself refuses
curl -s %[3]s/rest/flag_type/WebShop/Search%%2FRanking | head -c 100; echo
curl -s %[1]s/rest/flag_type/WebShop/Search%%2FRanking

# a flag type with a list of addresses, an object of components, and a key in a header
curl -s -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"name":"qa","description":"checked","cc_list":["qa@example.com"],"inclusions":{"WebShop":["Search/Ranking"]}}'

# an attachment, and what became of it
curl -s -X POST %[1]s/rest/bug/1/attachment -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"ids":[1,2],"data":"aGVsbG8K","file_name":"hello.txt","summary":"hello","content_type":"text/plain"}'
curl -s '%[1]s/rest/bug/1/attachment?include_fields=id,file_name,data'

# something that cannot be right is refused before the tracker sees it
curl -si -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' -d '{"name":"qa","description":"d","sortkey":0}'

# what an operator sees
curl -s %[2]s/status

# what the comparison of both trackers has found by now, and what it makes of it;
# portico canary report and portico canary verdict print the same
sleep 2
curl -s %[2]s/canary/report.txt
curl -s %[2]s/canary/verdict.json
curl -s %[2]s/switchover/status.json

Stop it with Ctrl-C.
`, clients, operators, address(behind.primary), demoKey("editor"), address(behind.candidate))
}
