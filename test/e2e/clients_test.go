package e2e

import (
	"testing"

	"portico/test/tracker"
)

// data is content in base64.
const data = "c29tZSBjb250ZW50Cg=="

// TestClients: what docs/reference/clients.md says of clients holds.
func TestClients(t *testing.T) { keep(t, "", append(duties(), legacyClients()...)) }

// legacyClients are those that docs/reference/clients.md, sections 1 and 2, describes: what each sends with every request, in each of its
// ways, and its requests, whose responses are looked at as the client does. The tracker is a stock one.
func legacyClients() []promise {
	const plain = `"file_name":"f","summary":"s","content_type":"text/plain"`
	const jsonType, login = "\nAccept: application/json\nContent-Type: application/json", "login=dev%40example.com&password=password1"
	return []promise{
		{"Clients", "Client_PythonBugzillaREST", sending(both, [2]string{"User-Agent: python-bugzilla/3.2.0\nContent-Type: application/json\nAccept: */*\nAccept-Encoding: identity", "Bugzilla_api_key=$key.dev"}), `
			- GET /rest/version -> | version~^"5\.
			- GET /rest/user?ids=1
			- GET /rest/bug/1?include_fields=id,summary
			- GET /rest/bug/5/attachment?exclude_fields=data -> | attachments | bugs.5.0.is_obsolete=0
			- GET /rest/bug/attachment/11 -> | attachments.11.id=11
			- POST /rest/bug/7/attachment {` + plain + `,"data":"$data","ids":["7"],"is_private":false} -> | ids.0 is integer
			set id ids.0
			- PUT /rest/bug/attachment/$id {"ids":[$id],"flags":[{"name":"review","status":"?"}]}
			- GET /rest/bug/99999/attachment -> 404 101`},
		{"Clients", "Client_BugzillaCLI", sending(once, [2]string{"User-Agent: python-bugzilla/3.2.0\nContent-Type: application/json", "Bugzilla_api_key=$key.dev"}), `
			- GET /rest/version
			- POST /rest/bug/7/attachment {"ids":["7"],` + plain + `,"data":"$data","is_patch":true}
			- GET /rest/version
			- GET /rest/bug/7/attachment -> | bugs.7.0.is_obsolete=0 | !bugs.7.1
			- GET /rest/version
			- GET /rest/bug/attachment/5 -> | attachments.5.data="eA=="`},
		{"Clients", "Client_NpmBugzilla", sending(both, [2]string{"X-BUGZILLA-API-KEY: $key.dev\nAuthorization: Bearer $key.dev\nUser-Agent: axios/1.10.0\nAccept: application/json", ""},
			[2]string{"X-BUGZILLA-TOKEN: $token\nUser-Agent: axios/1.10.0", ""}), `
			- GET /rest/version
			- GET /rest/bug/5/attachment -> | bugs keys ["5"] | bugs.5.* is attachment | attachments is object
			- GET /rest/bug/attachment/6 -> | attachments keys ["6"] | attachments.6 is attachment | attachments.6.flags.* is flag | bugs is object
			- POST /rest/bug/7/attachment {"ids":[7],"data":"$data",` + plain + `} -> | ids.0 is integer
			set id ids.0
			- PUT /rest/bug/attachment/$id {"summary":"t","is_obsolete":true} -> | attachments.0.changes.*.added is text | attachments.0.changes.*.removed is text | attachments.0.changes keys ["is_obsolete","summary"]`},
		{"Clients", "Client_NpmBz", sending(once, [2]string{"User-Agent: node-XMLHttpRequest" + jsonType, "api_key=$key.dev"}, [2]string{"User-Agent: node-XMLHttpRequest" + jsonType, login}, [2]string{"User-Agent: node-XMLHttpRequest" + jsonType, "token=$token"}), `
			- GET /rest/bug/1
			- GET /rest/bug/5/attachment -> | bugs.5.0
			- POST /rest/bug/7/attachment {"bug_id":7,"data":"$data",` + plain + `}
			set id ids.0
			- PUT /rest/bug/attachment/$id {"summary":"t"}
			- GET /rest/bug/99999/attachment -> 404 101
			- GET /rest/bug/attachment/x -> !400 52
			- GET /rest/no/such -> 404 32614`},
		{"Clients", "Client_Prow", sending(once, [2]string{"Authorization: Bearer $key.dev\nUser-Agent: unset/0", ""}, [2]string{"User-Agent: unset/0", "api_key=$key.dev"},
			[2]string{"X-BUGZILLA-API-KEY: $key.dev\nUser-Agent: unset/0", ""}, [2]string{"X-BUGZILLA-API-KEY: $key.dev\nUser-Agent: component/v1", "api_key=$key.dev"}), `
			- GET /rest/bug/1<<|/comment>>
			- GET /rest/bug?id=1
			- PUT /rest/bug/1 {"summary":"by Prow"}
			- GET /rest/bug/99999 -> 404 101
			- POST /jsonrpc.cgi {"jsonrpc":"1.0","method":"Bug.get","params":[{"ids":[1]}],"id":"identifier"} -> 200`},
		{"Clients", "Client_Libmozdata", sending(both, [2]string{"User-Agent: bugbot\nConnection: close\nX-Bugzilla-API-Key: ", ""}, [2]string{"User-Agent: bugbot\nConnection: close\nX-Bugzilla-API-Key: $key.dev", ""}), `
			- GET /rest/bug?id=5,10&include_fields=id
			- GET /rest/bug/5/attachment?ids=10&ids=2&include_fields=id&include_fields=bug_id -> ` +
			`| .={"bugs":{"5":[{"id":11,"bug_id":5}],"10":[{"id":13,"bug_id":10},{"id":14,"bug_id":10}],"2":[]},"attachments":{}}
			- GET /rest/bug/attachment/1?attachment_ids=5&include_fields=id -> | .={"bugs":{},"attachments":{"1":{"id":1},"5":{"id":5}}}
			- GET /rest/bug/1/history`},
		{"Clients", "Client_Libmozdata", sending(both, [2]string{"User-Agent: bugbot\nX-Bugzilla-API-Key: $key.dev", ""}), `- PUT /rest/bug/attachment/1 {"is_obsolete":true} -> | attachments.0.id=1`},
		{"Clients", "Client_Bugsy", sending(once, [2]string{"User-Agent: Bugsy\nX-Bugzilla-Login: dev@example.com\nX-Bugzilla-Password: password1", ""}), `- GET /rest/login -> | token is text`},
		{"Clients", "Client_Bugsy", sending(once, [2]string{"User-Agent: Bugsy\nX-Bugzilla-API-Key: $key.dev", "Bugzilla_api_key=$key.dev"}, [2]string{"User-Agent: Bugsy\nX-Bugzilla-Token: $token", ""}), `
			- GET /rest/valid_login?login=dev@example.com
			- GET /rest/bug/attachment/5 -> | attachments.5.creation_time is time
			set file attachments.5.file_name
			set patch attachments.5.is_patch
			- PUT /rest/bug/attachment/5 {"file_name":"$file","summary":"by Bugsy","content_type":"text/plain","comment":"","is_patch":$patch,"is_private":$patch,"is_obsolete":$patch,"flags":[]}
			- POST /rest/bug/7/attachment {"ids":[7],"data":"$data",` + plain + `,"is_patch":false,"flags":[]}
			- GET /rest/bug/99999/attachment -> 404 101`},
		{"Clients", "Client_Bugbite", sending(once, [2]string{"User-Agent: bugbite/0.0.18", "Bugzilla_api_key=$key.dev"}, [2]string{"User-Agent: bugbite/0.0.18", "Bugzilla_login=dev%40example.com&Bugzilla_password=password1"}), `
			- GET /rest/version
			- GET /rest/field/bug
			- GET /rest/bug/attachment/5?attachment_ids=10&attachment_ids=1 -> | attachments.10.data=null | attachments.1 is attachment | attachments.5 is attachment
			- GET /rest/bug/2/attachment?ids=10 -> | bugs.2=[] | bugs.10.1.id=14
			- POST /rest/bug/7/attachment {"ids":["7","8"],"data":"$data",` + plain + `,"comment":"","is_patch":false,"is_private":false} -> | ids.1 is integer
			- PUT /rest/bug/attachment/1 {"ids":["1"],"is_obsolete":false,"flags":[{"name":"review","status":"?"}]}
			- PUT /rest/bug/attachment/1 {"ids":["1"],"flags":[{"name":"review","status":"X"}]}`},
		{"Clients", "Client_Bzr", sending(once, [2]string{"X-BUGZILLA-API-KEY: $key.dev", ""}, [2]string{"", "Bugzilla_api_key=$key.dev"}), `
			- GET /rest/version
			- GET /rest/whoami -> 404 32614
			- GET /rest/valid_login?login=dev%40example.com -> | result=true
			- GET /rest/bug/5/attachment
			- PUT /rest/bug/attachment/1 {"ids":[1],"summary":"s"}`},
		{"Clients", "Client_Mylyn", sending(once, [2]string{"User-Agent: Jakarta Commons-HttpClient/3.1" + jsonType, "Bugzilla_api_key=$key.dev"}), `
			- GET /rest.cgi/<<version|field/bug|product?type=accessible|parameters|bug/1>>
			- GET /rest.cgi/bug/5/attachment?exclude_fields=data -> | bugs.5.0.creation_time is time | bugs.5.0.creator is text`},
		{"Clients", "Client_Mylyn", sending(once, [2]string{"User-Agent: Jakarta Commons-HttpClient/3.1" + jsonType, ""}), `
			- POST /rest.cgi/bug/7/attachment {"ids":[7],"data":"$data",` + plain + `,"comment":"c","is_patch":false,"is_private":false,` +
			`<<"Bugzilla_api_key":"$key.dev"|"Bugzilla_login":"dev@example.com","Bugzilla_password":"password1">>}
			- POST /rest.cgi/bug/7/attachment {"ids":[7],"Bugzilla_api_key":"$key.dev"} -> !400 50 | .~^\{"error":`},
		{"Clients", "Client_Perceval", sending(once, [2]string{"User-Agent: Perceval/1.0", "api_key=$key.dev"}, [2]string{"User-Agent: Perceval/1.0", "token=$token"}), `
			- GET /rest/version
			- GET /rest/bug?order=changeddate&limit=5
			- GET /rest/bug/5/attachment?ids=5&ids=2&ids=10&exclude_fields=data -> | bugs keys ["10","2","5"] | bugs.* is array
			- GET /rest/bug/5/<<comment|history>>?ids=2`},
		{"Clients", "Client_Bzexport", sending(once, [2]string{"User-Agent: bzexport" + jsonType, "api_key=$key.dev"}, [2]string{"User-Agent: bzexport" + jsonType, "token=$token"}), `
			- GET /rest/user?match=granter
			- POST /rest/bug/7/attachment {"ids":[7],"data":"$data","encoding":"base64",` + plain + `,"is_patch":true,"flags":[{"name":"review","requestee":"granter@example.com","status":"?","type_id":1,"new":true}]}
			set id ids.0
			- GET /rest/bug/attachment/$id -> | attachments.$id.shown=["review?(granter@example.com)"]
			- PUT /rest/bug/attachment/$id {"is_obsolete":true,"comment":""} -> | attachments.0.changes.is_obsolete.added="1"`},
		{"Clients", "Client_DrKonqi", sending(once, [2]string{"User-Agent: DrKonqi", ""}), `
			- GET /rest/version
			- GET /rest/login?` + login + `&restrict_login=true -> | token is text
			set mine token
			- GET /rest/<<product/TestProduct|field/bug/rep_platform>>?token=$mine
			- POST /rest/bug/7/attachment?token=$mine {"ids":["7"],"data":"$data",` + plain + `,"comment":"a+b"} -> | ids.0 is integer
			- POST /rest/bug/99999/attachment?token=$mine upload "content_type":"text/plain" -> 404 101`},
		{"Clients", "Client_BzDeck", sending(once, [2]string{"Origin: https://deck.example\nAccess-Control-Request-Method: PUT\nAccess-Control-Request-Headers: content-type,x-bugzilla-api-key", ""}),
			`- OPTIONS /rest/bug/attachment/5 -> 200 | @Access-Control-Allow-Headers~x-bugzilla-api-key`},
		{"Clients", "Client_BzDeck", sending(once, [2]string{"Origin: https://deck.example\nX-Bugzilla-API-Key: $key.dev\nAccept: application/json", ""}), `
			- GET /rest/bug/attachment/5
			- PUT /rest/bug/attachment/5 {"summary":"s"} -> | @Access-Control-Allow-Origin=*
			- GET /rest/field/bug`},
		{"Clients", "Client_CurlScriptsForFlagTypes", sending(both, [2]string{"User-Agent: curl/8.5.0\nAccept: */*\nContent-Type: application/json", "api_key=$key.editor"}), `
			- GET /rest/flag_type/TestProduct/Component%20A
			- POST /rest/flag_type {"name":"qa","description":"checked","target_type":"attachment","cc_list":["qa@example.com"],"inclusions":{"TestProduct":["Comp B"]},"sortkey":2} -> | flag_id is integer
			set id flag_id
			- PUT /rest/flag_type/$id {"ids":[1],"description":"new"}
			- GET /rest/flag_type/TestProduct -> | type:qa.description="new"`},
		// curl sends the type of a form where a script says nothing else; the raw tracker then finds no fields.
		{"Clients", "Client_CurlWithoutAContentType", sending(once, [2]string{"User-Agent: curl/8.5.0\nContent-Type: application/x-www-form-urlencoded", "api_key=$key.editor"}), `
			- POST /rest/flag_type {"name":"qa","description":"a+b & c=d; 100%25"}
			- GET /rest/flag_type/TestProduct -> | type:qa.description~^"a\+b .* c=d; 100%25"$
			- PUT /rest/flag_type/qa  {"is_active":false,"inclusions":{"TestProduct":["Comp B"]}}
			- GET /rest/flag_type/TestProduct/Component%20A -> | !type:qa
			- POST /rest/bug/7/attachment upload "content_type":"text/plain"
			- PUT /rest/bug/attachment/16 {"summary":"by curl"}`},
		{"Clients", "Client_OtherREST", sending(once, [2]string{"x-bugzilla-api-key: $key.dev\nX-PHABRICATOR-TOKEN: ph", ""}, [2]string{"", login}), `
			- GET /rest/bug/1<<|/comment>>
			- GET /rest/whoami -> 404 32614`},
		{"Clients", "Client_PythonBugzillaXMLRPC", sending(once, [2]string{"User-Agent: python-bugzilla/3.2.0\nAccept-Encoding: gzip"}), `
			- HEAD /xmlrpc.cgi -> ?200
			- HEAD /xmlrpc.cgi -> ?200` + rpc("Bugzilla.version {}", "5\\.2") + attachmentsByRPC(`"Bugzilla_api_key":"$key.dev"`)},
		{"Clients", "Client_PyBugz", sending(once, [2]string{"User-Agent: Python-xmlrpc/3.11"}),
			attachmentsByRPC(`"Bugzilla_api_key":"$key.dev"`) + attachmentsByRPC(`"Bugzilla_login":"dev@example.com","Bugzilla_password":"password1"`) +
				rpc(`Bug.get {"ids":[1]}`, "") + rpc(`Bug.comments {"ids":[1]}`, "")},
		{"Clients", "Client_BZClient", sending([]plan{{cached: true}}, [2]string{"User-Agent: BZ::Client/4.4"}),
			rpc("Bugzilla.version {}", "") + rpc(`User.login {"login":"editor@example.com","password":"password1"}`, "") + `
			set mine ~(\d+-\w+)` + rpc(`FlagType.get {"Bugzilla_token":"$mine","product":"TestProduct"}`, "") + `
			- GET /rest/flag_type/TestProduct` +
				rpc(`FlagType.create {"Bugzilla_token":"$mine","name":"by-rpc","description":"d","target_type":"attachment"}`, "") + `
			set id ~<int>(\d+)</int>
			- GET /rest/flag_type/TestProduct -> | type:by-rpc.id=$id` +
				rpc(`FlagType.update {"Bugzilla_token":"$mine","ids":[$id],"description":"e"}`, "") + `
			- GET /rest/flag_type/TestProduct -> | type:by-rpc.description="e"` + attachmentsByRPC(`"Bugzilla_api_key":"$key.dev"`)},
		{"Clients", "Client_Libreport", sending(once, [2]string{"User-Agent: libreport/2.17\nAuthorization: Bearer $key.dev"}), rpc("Bugzilla.version {}", "") +
			rpc(`Bug.add_attachment {"Bugzilla_api_key":"$key.dev","ids":[7],"data":{"base64":"$data"},"file_name":"backtrace","summary":"File: backtrace","content_type":"text/plain","minor_update":true}`, "") + `
			sent Authorization: Bearer $key.dev
			sent minor_update`},
		// Bugzilla.NET comes with the cookies of its login.
		{"Clients", "Client_JavaAndNETByXMLRPC", sending(once, [2]string{"User-Agent: Apache XML RPC 3.1.3"}),
			rpc(`User.login {"login":"dev@example.com","password":"password1"}`, "") + `
			set mine ~(\d+-\w+)` + attachmentsByRPC(`"Bugzilla_token":"$mine"`) + `
			header Cookie: Bugzilla_login=4; Bugzilla_logincookie=x
			- POST /xmlrpc.cgi call Bugzilla.version {} -> ?
			sent Cookie: Bugzilla_login=4; Bugzilla_logincookie=x`},
	}
}

// TestAFiledBugTakesAnAttachment files a bug with a key of the demo, as clients do over REST, XML-RPC and JSON-RPC, and attaches a file to it.
func TestAFiledBugTakesAnAttachment(t *testing.T) {
	const key = "DemodeveloperKey000000000000000000000000"
	const fields = `"product":"WebShop","component":"Search/Ranking","version":"unspecified","summary":"new","description":"d","Bugzilla_api_key":"` + key + `"`
	demo := []plan{{program: true, tracker: tracker.Options{Seed: tracker.SeedDemo}}}
	const attach = `
		set bug ~(?:"id":|<name>id</name><value><int>)(\d\d+)
		- POST /rest/bug/$bug/attachment?api_key=` + key + ` {"data":"aGk=","file_name":"f.txt","summary":"s","content_type":"text/plain"}
		- GET /rest/bug/$bug/attachment?api_key=` + key + ` -> | bugs.$bug.0.file_name="f.txt"`
	keep(t, "", []promise{{"Bugs", "filed and attached to", demo, `
		- POST /rest/bug {` + fields + "} -> 200" + attach + `
		- POST /jsonrpc.cgi {"id":1,"method":"Bug.create","params":[{` + fields + "}]} -> ?200" + attach + rpc("Bug.create {"+fields+"}", "") + attach}})
}

// rpc is a call of XML-RPC that succeeds, with a response that matches.
func rpc(call, re string) string {
	return "\n- POST /xmlrpc.cgi call " + call + " -> ?200 | . lacks <fault> | .~" + re + "\n"
}

// attachmentsByRPC reads, makes and changes attachments with a key or a login in the struct.
func attachmentsByRPC(credentials string) string {
	return rpc(`Bug.attachments {`+credentials+`,"ids":[5]}`, "own.txt") + rpc(`Bug.attachments {`+credentials+`,"attachment_ids":[1]}`, "<base64>") +
		rpc(`Bug.add_attachment {`+credentials+`,"ids":[7],"data":{"base64":"$data"},"file_name":"f","summary":"by RPC","content_type":"text/plain"}`, "") + `
		set made ~<int>(\d+)</int>` + rpc(`Bug.update_attachment {`+credentials+`,"ids":[$made],"summary":"changed"}`, "") + `
		- GET /rest/bug/attachment/$made -> | attachments.$made.summary="changed"
		`
}
