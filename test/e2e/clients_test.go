package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// legacyClient is a client that docs/reference/clients.md, sections 1 and 2, describes: what it sends with every request, in each of
// its ways, and its requests, whose responses are looked at as the client does. The tracker is a stock one.
type legacyClient struct {
	name  string
	plans []plan
	ways  []way
	steps string
}

// way is headers, one a line, and a query.
type way struct{ header, query string }

// data is content in base64.
const data = "c29tZSBjb250ZW50Cg=="

func TestClients(t *testing.T) {
	for _, each := range legacyClients() {
		for _, p := range each.plans {
			for _, w := range each.ways {
				t.Run(each.name, func(t *testing.T) {
					t.Parallel()
					h, tape := recorded(t, p)
					s := steps(h, tape)
					s.names["token"], s.query, s.header = h.login(t), w.query, http.Header{}
					for line := range strings.Lines(w.header) {
						name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
						s.header.Set(name, value)
					}
					if err := s.run(t, each.steps); err != nil {
						t.Errorf("%+v: %v", w, err)
					}
				})
			}
		}
	}
}

func legacyClients() []legacyClient {
	const plain = `"file_name":"f","summary":"s","content_type":"text/plain"`
	const jsonType, login = "\nAccept: application/json\nContent-Type: application/json", "login=dev%40example.com&password=password1"
	return []legacyClient{
		{"Client_PythonBugzillaREST", both, []way{{"User-Agent: python-bugzilla/3.2.0\nContent-Type: application/json\nAccept: */*\nAccept-Encoding: identity", "Bugzilla_api_key=$key.dev"}}, `
			- GET /rest/version -> | version~^"5\.
			- GET /rest/user?ids=1
			- GET /rest/bug/1?include_fields=id,summary
			- GET /rest/bug/5/attachment?exclude_fields=data -> | attachments | bugs.5.0.is_obsolete=0
			- GET /rest/bug/attachment/11 -> | attachments.11.id=11
			- POST /rest/bug/7/attachment {` + plain + `,"data":"$data","ids":["7"],"is_private":false} -> | ids.0 is integer
			set id ids.0
			- PUT /rest/bug/attachment/$id {"ids":[$id],"flags":[{"name":"review","status":"?"}]}
			- GET /rest/bug/99999/attachment -> 404 101`},
		{"Client_BugzillaCLI", once, []way{{"User-Agent: python-bugzilla/3.2.0\nContent-Type: application/json", "Bugzilla_api_key=$key.dev"}}, `
			- GET /rest/version
			- POST /rest/bug/7/attachment {"ids":["7"],` + plain + `,"data":"$data","is_patch":true}
			- GET /rest/version
			- GET /rest/bug/7/attachment -> | bugs.7.0.is_obsolete=0 | !bugs.7.1
			- GET /rest/version
			- GET /rest/bug/attachment/5 -> | attachments.5.data="eA=="`},
		{"Client_NpmBugzilla", both, []way{
			{"X-BUGZILLA-API-KEY: $key.dev\nAuthorization: Bearer $key.dev\nUser-Agent: axios/1.10.0\nAccept: application/json", ""},
			{"X-BUGZILLA-TOKEN: $token\nUser-Agent: axios/1.10.0", ""},
		}, `
			- GET /rest/version
			- GET /rest/bug/5/attachment -> | bugs keys ["5"] | bugs.5.* is attachment | attachments is object
			- GET /rest/bug/attachment/6 -> | attachments keys ["6"] | attachments.6 is attachment | attachments.6.flags.* is flag | bugs is object
			- POST /rest/bug/7/attachment {"ids":[7],"data":"$data",` + plain + `} -> | ids.0 is integer
			set id ids.0
			- PUT /rest/bug/attachment/$id {"summary":"t","is_obsolete":true} -> | attachments.0.changes.*.added is text | attachments.0.changes.*.removed is text | attachments.0.changes keys ["is_obsolete","summary"]`},
		{"Client_NpmBz", once, []way{
			{"User-Agent: node-XMLHttpRequest" + jsonType, "api_key=$key.dev"}, {"User-Agent: node-XMLHttpRequest" + jsonType, login}, {"User-Agent: node-XMLHttpRequest" + jsonType, "token=$token"},
		}, `
			- GET /rest/bug/1
			- GET /rest/bug/5/attachment -> | bugs.5.0
			- POST /rest/bug/7/attachment {"bug_id":7,"data":"$data",` + plain + `}
			set id ids.0
			- PUT /rest/bug/attachment/$id {"summary":"t"}
			- GET /rest/bug/99999/attachment -> 404 101
			- GET /rest/bug/attachment/x -> !400 52
			- GET /rest/no/such -> 404 32614`},
		{"Client_Prow", once, []way{
			{"Authorization: Bearer $key.dev\nUser-Agent: unset/0", ""}, {"User-Agent: unset/0", "api_key=$key.dev"},
			{"X-BUGZILLA-API-KEY: $key.dev\nUser-Agent: unset/0", ""}, {"X-BUGZILLA-API-KEY: $key.dev\nUser-Agent: component/v1", "api_key=$key.dev"},
		}, `
			- GET /rest/bug/1<<|/comment>>
			- GET /rest/bug?id=1
			- PUT /rest/bug/1 {"summary":"by Prow"}
			- GET /rest/bug/99999 -> 404 101
			- POST /jsonrpc.cgi {"jsonrpc":"1.0","method":"Bug.get","params":[{"ids":[1]}],"id":"identifier"} -> 200`},
		{"Client_Libmozdata", both, []way{{"User-Agent: bugbot\nConnection: close\nX-Bugzilla-API-Key: ", ""}, {"User-Agent: bugbot\nConnection: close\nX-Bugzilla-API-Key: $key.dev", ""}}, `
			- GET /rest/bug?id=5,10&include_fields=id
			- GET /rest/bug/5/attachment?ids=10&ids=2&include_fields=id&include_fields=bug_id -> ` +
			`| .={"bugs":{"5":[{"id":11,"bug_id":5}],"10":[{"id":13,"bug_id":10},{"id":14,"bug_id":10}],"2":[]},"attachments":{}}
			- GET /rest/bug/attachment/1?attachment_ids=5&include_fields=id -> | .={"bugs":{},"attachments":{"1":{"id":1},"5":{"id":5}}}
			- GET /rest/bug/1/history`},
		{"Client_Libmozdata", both, []way{{"User-Agent: bugbot\nX-Bugzilla-API-Key: $key.dev", ""}}, `- PUT /rest/bug/attachment/1 {"is_obsolete":true} -> | attachments.0.id=1`},
		{"Client_Bugsy", once, []way{{"User-Agent: Bugsy\nX-Bugzilla-Login: dev@example.com\nX-Bugzilla-Password: password1", ""}}, `- GET /rest/login -> | token is text`},
		{"Client_Bugsy", once, []way{
			{"User-Agent: Bugsy\nX-Bugzilla-API-Key: $key.dev", "Bugzilla_api_key=$key.dev"}, {"User-Agent: Bugsy\nX-Bugzilla-Token: $token", ""},
		}, `
			- GET /rest/valid_login?login=dev@example.com
			- GET /rest/bug/attachment/5 -> | attachments.5.creation_time is time
			set file attachments.5.file_name
			set patch attachments.5.is_patch
			- PUT /rest/bug/attachment/5 {"file_name":"$file","summary":"by Bugsy","content_type":"text/plain","comment":"","is_patch":$patch,"is_private":$patch,"is_obsolete":$patch,"flags":[]}
			- POST /rest/bug/7/attachment {"ids":[7],"data":"$data",` + plain + `,"is_patch":false,"flags":[]}
			- GET /rest/bug/99999/attachment -> 404 101`},
		{"Client_Bugbite", once, []way{{"User-Agent: bugbite/0.0.18", "Bugzilla_api_key=$key.dev"}, {"User-Agent: bugbite/0.0.18", "Bugzilla_login=dev%40example.com&Bugzilla_password=password1"}}, `
			- GET /rest/version
			- GET /rest/field/bug
			- GET /rest/bug/attachment/5?attachment_ids=10&attachment_ids=1 -> | attachments.10.data=null | attachments.1 is attachment | attachments.5 is attachment
			- GET /rest/bug/2/attachment?ids=10 -> | bugs.2=[] | bugs.10.1.id=14
			- POST /rest/bug/7/attachment {"ids":["7","8"],"data":"$data",` + plain + `,"comment":"","is_patch":false,"is_private":false} -> | ids.1 is integer
			- PUT /rest/bug/attachment/1 {"ids":["1"],"is_obsolete":false,"flags":[{"name":"review","status":"?"}]}
			- PUT /rest/bug/attachment/1 {"ids":["1"],"flags":[{"name":"review","status":"X"}]}`},
		{"Client_Bzr", once, []way{{"X-BUGZILLA-API-KEY: $key.dev", ""}, {"", "Bugzilla_api_key=$key.dev"}}, `
			- GET /rest/version
			- GET /rest/whoami -> 404 32614
			- GET /rest/valid_login?login=dev%40example.com -> | result=true
			- GET /rest/bug/5/attachment
			- PUT /rest/bug/attachment/1 {"ids":[1],"summary":"s"}`},
		{"Client_Mylyn", once, []way{{"User-Agent: Jakarta Commons-HttpClient/3.1" + jsonType, "Bugzilla_api_key=$key.dev"}}, `
			- GET /rest.cgi/<<version|field/bug|product?type=accessible|parameters|bug/1>>
			- GET /rest.cgi/bug/5/attachment?exclude_fields=data -> | bugs.5.0.creation_time is time | bugs.5.0.creator is text`},
		{"Client_Mylyn", once, []way{{"User-Agent: Jakarta Commons-HttpClient/3.1" + jsonType, ""}}, `
			- POST /rest.cgi/bug/7/attachment {"ids":[7],"data":"$data",` + plain + `,"comment":"c","is_patch":false,"is_private":false,` +
			`<<"Bugzilla_api_key":"$key.dev"|"Bugzilla_login":"dev@example.com","Bugzilla_password":"password1">>}
			- POST /rest.cgi/bug/7/attachment {"ids":[7],"Bugzilla_api_key":"$key.dev"} -> !400 50 | .~^\{"error":`},
		{"Client_Perceval", once, []way{{"User-Agent: Perceval/1.0", "api_key=$key.dev"}, {"User-Agent: Perceval/1.0", "token=$token"}}, `
			- GET /rest/version
			- GET /rest/bug?order=changeddate&limit=5
			- GET /rest/bug/5/attachment?ids=5&ids=2&ids=10&exclude_fields=data -> | bugs keys ["10","2","5"] | bugs.* is array
			- GET /rest/bug/5/<<comment|history>>?ids=2`},
		{"Client_Bzexport", once, []way{{"User-Agent: bzexport" + jsonType, "api_key=$key.dev"}, {"User-Agent: bzexport" + jsonType, "token=$token"}}, `
			- GET /rest/user?match=granter
			- POST /rest/bug/7/attachment {"ids":[7],"data":"$data","encoding":"base64",` + plain + `,"is_patch":true,"flags":[{"name":"review","requestee":"granter@example.com","status":"?","type_id":1,"new":true}]}
			set id ids.0
			- GET /rest/bug/attachment/$id -> | attachments.$id.shown=["review?(granter@example.com)"]
			- PUT /rest/bug/attachment/$id {"is_obsolete":true,"comment":""} -> | attachments.0.changes.is_obsolete.added="1"`},
		{"Client_DrKonqi", once, []way{{"User-Agent: DrKonqi", ""}}, `
			- GET /rest/version
			- GET /rest/login?` + login + `&restrict_login=true -> | token is text
			set mine token
			- GET /rest/<<product/TestProduct|field/bug/rep_platform>>?token=$mine
			- POST /rest/bug/7/attachment?token=$mine {"ids":["7"],"data":"$data",` + plain + `,"comment":"a+b"} -> | ids.0 is integer
			- POST /rest/bug/99999/attachment?token=$mine upload "content_type":"text/plain" -> 404 101`},
		{"Client_BzDeck", once, []way{{"Origin: https://deck.example\nAccess-Control-Request-Method: PUT\nAccess-Control-Request-Headers: content-type,x-bugzilla-api-key", ""}},
			`- OPTIONS /rest/bug/attachment/5 -> 200 | @Access-Control-Allow-Headers~x-bugzilla-api-key`},
		{"Client_BzDeck", once, []way{{"Origin: https://deck.example\nX-Bugzilla-API-Key: $key.dev\nAccept: application/json", ""}}, `
			- GET /rest/bug/attachment/5
			- PUT /rest/bug/attachment/5 {"summary":"s"} -> | @Access-Control-Allow-Origin=*
			- GET /rest/field/bug`},
		{"Client_CurlScriptsForFlagTypes", both, []way{{"User-Agent: curl/8.5.0\nAccept: */*\nContent-Type: application/json", "api_key=$key.editor"}}, `
			- GET /rest/flag_type/TestProduct/Component%20A
			- POST /rest/flag_type {"name":"qa","description":"checked","target_type":"attachment","cc_list":["qa@example.com"],"inclusions":{"TestProduct":["Comp B"]},"sortkey":2} -> | flag_id is integer
			set id flag_id
			- PUT /rest/flag_type/$id {"ids":[1],"description":"new"}
			- GET /rest/flag_type/TestProduct -> | type:qa.description="new"`},
		// curl sends the type of a form where a script says nothing else; the raw tracker then finds no fields.
		{"Client_CurlWithoutAContentType", once, []way{{"User-Agent: curl/8.5.0\nContent-Type: application/x-www-form-urlencoded", "api_key=$key.editor"}}, `
			- POST /rest/flag_type {"name":"qa","description":"a+b & c=d; 100%25"}
			- GET /rest/flag_type/TestProduct -> | type:qa.description~^"a\+b .* c=d; 100%25"$
			- PUT /rest/flag_type/qa  {"is_active":false,"inclusions":{"TestProduct":["Comp B"]}}
			- GET /rest/flag_type/TestProduct/Component%20A -> | !type:qa
			- POST /rest/bug/7/attachment upload "content_type":"text/plain"
			- PUT /rest/bug/attachment/16 {"summary":"by curl"}`},
		{"Client_OtherREST", once, []way{{"x-bugzilla-api-key: $key.dev\nX-PHABRICATOR-TOKEN: ph", ""}, {"", login}}, `
			- GET /rest/bug/1<<|/comment>>
			- GET /rest/whoami -> 404 32614`},
	}
}
