package e2e

import (
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// The reference tracker itself, in what the recordings do not show: other paths of clients, its settings and its quirks. A stock tracker
// reads no credentials in headers.
func TestReferenceTracker(t *testing.T) {
	quirk := func(all ...tracker.Quirk) tracker.Options { return tracker.Options{Quirks: all} }
	bmo, harmony := tracker.Options{Dialect: tracker.DialectBMO}, tracker.Options{Dialect: tracker.DialectHarmony}
	const ascii, unicode = "/rest/flag_type/TestProduct/comp%2Fslash", "/rest/flag_type/%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC"
	limited := tracker.Options{Dialect: tracker.DialectBMO, RateLimit: 2, Quirks: []tracker.Quirk{tracker.QuirkReverseProxy}}
	const patch = `{"data":"LS0tCg==","file_name":"f.patch","summary":"s","is_patch":true}`
	for _, each := range []struct {
		name    string
		options tracker.Options
		steps   string
	}{
		{"JSON-RPC reaches what REST cannot", tracker.Options{}, `
			- POST /jsonrpc.cgi {"method":"FlagType.get","params":[{"product":"<<Product/With/Slash|Ünïcode 日本>>"}],"id":7} -> ? | id=7 | error=null | result.bug.0.type="bug"
			- POST /jsonrpc.cgi {"method":"FlagType.get","params":[{"product":"Nope"}],"id":"x"} -> ? | error.code=106 | result=null
			- POST /jsonrpc.cgi {"method":"No.such","params":[{}],"id":1} -> ? | error.code=32601`},
		{"XML-RPC", tracker.Options{}, `
			header Content-Type: text/xml
			- HEAD /xmlrpc.cgi -> ?200
			- POST /xmlrpc.cgi ` + oneLine(xmlCall("Bugzilla.version", "")) + ` -> ?200 | .~<name>version</name><value><string>5\.2\+</string>
			- POST /xmlrpc.cgi ` + oneLine(xmlCall("Bug.add_attachment", xmlText("Bugzilla_api_key", "$key.dev")+xmlIDs("ids", 7)+xmlMember("data", "<base64>aGVsbG8= </base64>")+
			xmlMember("file_name", "f.txt")+xmlText("summary", "a &lt; b")+xmlMember("is_private", "<boolean>0</boolean>")+xmlText("content_type", "text/plain"))) + ` -> ?200 | .~<int>16</int>
			- POST /xmlrpc.cgi ` + oneLine(xmlCall("Bug.attachments", xmlIDs("attachment_ids", 16))) +
			` -> ?200 | .~<base64>aGVsbG8=</base64> | .~<string>a &lt; b</string> | .~<name>is_private</name><value><int>0</int> | .~<dateTime.iso8601>20 | @Content-Type=text/xml
			- POST /xmlrpc.cgi ` + oneLine(xmlCall("Bug.update_attachment", xmlText("Bugzilla_api_key", "$key.dev")+xmlMember("ids", "<int>16</int>")+xmlMember("is_obsolete", "<boolean>1</boolean>"))) +
			` -> ?200 | .~<name>is_obsolete</name> | .~<string>1</string>
			- POST /xmlrpc.cgi ` + oneLine(xmlCall("FlagType.get", xmlText("product", "Nope"))) + ` -> ?200 | .~<fault> | .~<int>106</int>
			- POST /xmlrpc.cgi no XML -> ? | .~<fault>`},
		{"other paths of clients", tracker.Options{}, `
			- GET /rest/version -> | version="5.2+"
			- GET /rest/login?login=dev@example.com&password=password1
			set token token
			- GET /rest/user?ids=1&token=$token -> | users.0.name="admin@example.com"
			- GET /rest/user/dev@example.com -> | users.0.id=4
			- GET /rest/valid_login?login=dev@example.com&api_key=$key.dev -> | result=true
			- GET /rest/valid_login?login=plain@example.com&api_key=$key.dev -> | result=false
			- GET /rest/bug/1 -> | bugs.0.component="Component A"
			- GET /rest/bug/alias-one?include_fields=id -> | bugs.0.id=1
			- GET /rest/bug?id=1,4,5&include_fields=id -> | bugs.1 | !bugs.2
			- GET /rest/product/TestProduct -> | products.0.components.0.name="TestComponent"
			- GET /rest/product?type=accessible -> | products.0.name="TestProduct"
			- GET /rest/product_accessible -> | ids.0=1
			- GET /rest/<<extensions|time>>
			- GET /rest/parameters -> | parameters.requirelogin="0"
			- GET /rest/field/bug -> | fields.0.name="bug_severity"
			- GET /rest/field/bug/bug_status -> | fields.0.values.1.name="CONFIRMED"
			- GET /rest/bug/1/history -> | bugs.0.id=1
			- POST /rest/bug/7/comment?api_key=$key.dev {"comment":"said"} -> | id=26
			- GET /rest/bug/7/comment -> | bugs.7.comments.1.text="said"
			- GET /rest/whoami -> 404 32614
			- GET /rest/bug/4 -> 401 102`},
		{"pages", tracker.Options{}, `
			- GET / -> ?200 | @Content-Type~^text/html
			- GET /attachment.cgi?id=9 -> ?200 | @Content-Type~^application/x-foo
			- GET /attachment.cgi?id=2 -> ? | . lacks hello
			- GET /show_bug.cgi?id=7 -> ? | .~bug seven`},
		{"a write to the collection of attachments edits bugs", tracker.Options{}, `
			- PUT /rest/bug/attachment?api_key=$key.dev {"ids":[7],"summary":"taken"} -> | bugs.0.changes.summary.added="taken"
			- GET /rest/bug/7 -> | bugs.0.summary="taken"`},
		{"changes of bugs", tracker.Options{}, `
			- PUT /rest/bug/7?api_key=$key.dev {"status":"CLOSED"} -> 404 51
			- PUT /rest/bug/7?api_key=$key.dev {"status":"RESOLVED"} -> 400 121
			- PUT /rest/bug/7?api_key=$key.dev {"resolution":"FIXED"} -> 400 122
			- PUT /rest/bug/7?api_key=$key.dev {"flags":[{"name":"review","status":"?"}]} -> 404 51
			- PUT /rest/bug/7?api_key=$key.dev {"comment":{"body":"secret","is_private":true}} -> 401 113
			- PUT /rest/bug/7?api_key=$key.dev {"status":"RESOLVED","resolution":"INVALID","flags":[{"name":"needinfo","status":"?"}],"comment":{"comment":"said"}} -> | .~"flagtypes.name":\{[^}]*"needinfo\?"
			- GET /rest/bug/7 -> | bugs.0.resolution="INVALID" | bugs.0.is_open=false | bugs.0.flags.0 | !bugs.0.flags.1
			- PUT /rest/bug/7?api_key=$key.dev {"status":"CONFIRMED"} -> | bugs.0.changes.resolution.removed="INVALID"
			- PUT /rest/bug/7?api_key=$key.dev {"product":"4242","component":"7"} -> | bugs.0.changes.product.added="4242"
			- PUT /rest/flag_type/2?api_key=$key.editor {"inclusions":["TestProduct"]} -> | flagtypes.0.id=2
			- GET /rest/bug/7 -> | bugs.0.flags=[]
			- PUT /rest/bug/7?api_key=$key.plain {"summary":"taken"} -> 401 115
			- PUT /rest/bug/7?api_key=$key.plain {"comment":{"body":"all may comment"}} -> | bugs.0.id=7
			- GET /rest/bug/7/comment -> | bugs.7.comments.1.text="said"`},
		{"a bug that moves into a restricted product goes out of sight", tracker.Options{}, `
			- PUT /rest/bug/8?api_key=$key.secret {"product":"SecretProduct","component":"Secret Comp"} -> | bugs.0.changes.groups.added="secretgroup"
			- GET /rest/bug/8/attachment -> 401 102
			- PUT /rest/bug/8?api_key=$key.secret {"product":"TestProduct","component":"Comp B"} -> | bugs.0.changes.groups.removed="secretgroup"
			- GET /rest/bug/8 -> | bugs.0.component="Comp B"
			- PUT /rest/bug/8?api_key=$key.secret {"product":"4242"} -> 400 50
			- PUT /rest/bug/8?api_key=$key.plain {"summary":"x"} -> 401 115`},
		{"who changes only the requestee of a pending flag is not its setter", tracker.Options{}, `
			- PUT /rest/bug/attachment/6?api_key=$key.insider {"flags":[{"id":1,"status":"?","requestee":"insider@example.com"}]}
			- GET /rest/bug/attachment/6 -> | attachments.6.flags.2.requestee="insider@example.com" | attachments.6.flags.2.setter="dev@example.com"
			- PUT /rest/bug/attachment/6?api_key=$key.insider {"flags":[{"id":1,"status":"+"}]}
			- GET /rest/bug/attachment/6 -> | attachments.6.flags.2.setter="insider@example.com"`},
		{"flags go to an active type of the same name when theirs leaves a place", tracker.Options{}, `
			- PUT /rest/flag_type/3?api_key=$key.editor {"inclusions":["4242"]}
			- GET /rest/bug/attachment/6 -> | attachments.6.flags.flag:dupname.type_id=4`},
		{"or away", tracker.Options{}, `
			- PUT /rest/flag_type/4?api_key=$key.editor {"is_active":false}
			- PUT /rest/flag_type/3?api_key=$key.editor {"inclusions":["4242"]}
			- GET /rest/bug/attachment/6 -> | !attachments.6.flags.flag:dupname`},
		{"ids of a refused write are not given out again", tracker.Options{}, `
			- POST /rest/bug/7/attachment?api_key=$key.dev upload "content_type":"text/plain","flags":[{"name":"nope","status":"?"}] -> 404 51
			- POST /rest/bug/7/attachment?api_key=$key.dev {"data":"","file_name":"f","summary":"s","content_type":"text/plain"} -> 400 606
			- POST /rest/bug/7/attachment?api_key=$key.dev ` + patch + ` -> | ids.0=17
			- GET /rest/bug/attachment/16 -> | !attachments.16
			- GET /rest/bug/7/comment -> | bugs.7.comments.1.attachment_id=17`},
		{"many ids are all or none", tracker.Options{}, `
			- POST /rest/bug/7/attachment?api_key=$key.dev upload "ids":[7,4],"content_type":"text/plain" -> 401 102
			- PUT /rest/flag_type/1?api_key=$key.editor {"ids":[1,99999],"sortkey":3} -> 404 51
			- PUT /rest/flag_type/1?api_key=$key.editor {"sortkey":3} -> | flagtypes.0.changes.sortkey.removed="10"
			executed 1`},
		{"administrators inherit groups", tracker.Options{}, `
			- GET /rest/flag_type/SecretProduct?api_key=$key.admin -> | attachment.0.values.2="+"
			- GET /rest/bug/attachment/2?api_key=$key.admin -> | attachments.2.is_private=1`},
		{"JSONP has a tag of its own", tracker.Options{}, `
			- GET /rest/version?callback=alert(1) -> 400 32611
			header Accept: text/html
			- GET /rest/version?callback=a.b[0] -> ?200 | .~^/\*\*/a\.b\[0\]\(\{"version":"5\.2\+"\}\)$ | @Content-Type=text/javascript; charset=UTF-8`},
		{"version and product are options", tracker.Options{Version: "5.0.4.1+", Product: "Isolated"}, `
			- GET /rest/version -> | version="5.0.4.1+"
			- GET /rest/flag_type/Isolated
			- POST /_tracker/reset -> ?200
			- GET /rest/flag_type/Isolated
			dev POST /rest/bug/7/attachment ` + patch + ` -> 401 410`},
		{"limits and groups are options", tracker.Options{Params: tracker.Params{MaxAttachmentSize: 2, NoInsiderGroup: true}}, `
			- POST /rest/bug/7/attachment?api_key=$key.dev {"data":"$blob","file_name":"f","summary":"s","content_type":"text/plain"} -> 400 600
			- GET /rest/bug/attachment/2?api_key=$key.insider -> 401 304`},
		{"faults and counts are endpoints", tracker.Options{}, `
			- POST /_tracker/faults ["op=version,kind=error500","op=time,kind=html200"] -> ?200 | faults=2
			- GET /rest/version -> ?500
			- POST /_tracker/faults op=version,kind=html200 -> ?200 | faults=1
			- GET /rest/version -> ?200 | . lacks version
			- POST /_tracker/faults <<kind=nope|op=x|kind=slow,nth=x|kind=slow,percent=101|kind=slow,delay=-1s|kind=slow,what=1>> -> ?400
			- POST /_tracker/faults -> ?200
			- GET /rest/version -> | version="5.2+"
			- GET /_tracker/requests -> | requests.version=3
			- GET /_tracker/nope -> ?404`},
		{"one request of an operation fails, whatever its protocol", tracker.Options{Faults: []tracker.Fault{{Op: "flag_type.*", Kind: tracker.FaultError500, Nth: 2}}}, `
			- GET /rest/flag_type/4242
			- GET /rest/version
			- POST /jsonrpc.cgi {"method":"FlagType.get","params":[{"product":"4242"}],"id":1} -> ?500
			- GET /rest/flag_type/4242`},
		{"the journal has each executed write, without credentials, and ends with a reset", tracker.Options{}, `
			header X-Request-Id: r-1
			- POST /rest/flag_type?api_key=$key.editor {"name":"j","description":"d"} -> | id=19
			- POST /rest/flag_type?api_key=$key.editor {"name":"bad name","description":"d"} -> 400 1101
			- POST /rest/flag_type?api_key=$key.editor {"name":"j2","description":"d","inclusions":{}} -> ? | code=100500
			- PUT /rest/bug/attachment/12?api_key=$key.dev {"ids":[12,5],"summary":"x"}
			- GET /rest/login?login=dev@example.com&password=password1
			- GET /_tracker/journal -> | . lacks Key0 | . lacks password | journal.0.id=1 | journal.0.op="flag_type.create" | journal.0.ids=[19] | ` +
			`journal.0.user="editor@example.com" | journal.0.request_id="r-1" | journal.1.op="attachment.update" | journal.1.ids=[12,5] | !journal.2
			- POST /_tracker/reset -> ?200
			executed 0
			- POST /rest/flag_type?api_key=$key.editor {"name":"j","description":"d"} -> | id=19`},
		{"an attachment that is named twice keeps the time of the change", tracker.Options{}, `
			- PUT /rest/bug/attachment/12?api_key=$key.dev {"ids":[12,12],"summary":"x"}
			- GET /rest/bug/attachment/12 -> | attachments.12.last_change_time is now`},
		{"another host is redirected to the tracker's own address", tracker.Options{Dialect: tracker.DialectBMO, URLBase: "http://bugs.example/"}, `
			- GET <</rest/version|/nothing>> -> ?302 | @Location=http://bugs.example/
			header Host: bugs.example
			- GET /rest/version`},
		{"an address with https is reached with X-Forwarded-Proto only", tracker.Options{Dialect: tracker.DialectHarmony, URLBase: "https://bugs.example/"}, `
			header Host: bugs.example
			- GET /rest/version -> ?500
			header X-Forwarded-Proto: https
			- GET /rest/version`},
		{"an address is limited by its anonymous reads and its bad keys, and then blocked", limited, `
			header X-Forwarded-For: 10.0.0.9, 10.0.0.1
			- GET /rest/bug/attachment/<<1|1>>
			- GET /rest/bug/attachment/1 -> 400 32000
			- GET <</rest/version|/rest/bug/1?api_key=$key.dev|/>> -> ?429 | . lacks error" | @Retry-After=
			header X-Forwarded-For: 10.0.0.2
			- GET /rest/bug/attachment/1?api_key=$key.<<dev|dev|dev|dev>>
			- GET /rest/bug/1?api_key=wrong<<1|2|3|4|5>> -> 400 306
			- GET /rest/bug/1?api_key=wrong -> 400 32000
			- GET /rest/version -> ?429`},
		{"slash refused", tracker.Options{}, `
			- GET ` + ascii + ` -> ?404 | . lacks error"
			- GET /rest/flag_type/TestProduct?component=comp/slash -> | bug.0.name="excprod"`},
		{"slash-on", quirk(tracker.QuirkSlashOn), `- GET ` + ascii + ` -> 404 32614`},
		{"slash-nodecode", quirk(tracker.QuirkSlashNoDecode), `- GET ` + ascii + ` -> 404 51`},
		{"mod_cgi", quirk(tracker.QuirkModCGI), `- POST /rest/flag_type?api_key=$key.editor [] -> ?500 | . lacks error"`},
		{"utf8-path", quirk(tracker.QuirkUTF8Path), `
			- GET ` + unicode + ` -> | bug.0.name="excprod"
			- GET ` + unicode + `/K%C3%B6mp -> 404 51`},
		{"requirelogin", quirk(tracker.QuirkRequireLogin), `
			- GET /rest/bug/1 -> 401 410
			- GET /rest/version`},
		{"email-filter", quirk(tracker.QuirkEmailFilter), `
			- GET /rest/bug/attachment/1 -> | attachments.1.creator="dev"
			- GET /rest/bug/attachment/1?api_key=$key.dev -> | attachments.1.creator="dev@example.com"`},
		{"missing-field", quirk(tracker.QuirkMissingField), `
			- GET /rest/flag_type/TestProduct -> | !bug.0.is_multiplicable
			- GET /rest/bug/attachment/6 -> | !attachments.6.creator`},
		{"changed-type", quirk(tracker.QuirkChangedType), `- GET /rest/flag_type/TestProduct -> | bug.0.id="18"`},
		{"reordered", quirk(tracker.QuirkReordered), `
			- GET /rest/flag_type/TestProduct -> | bug.0.name="needinfo"
			- PUT /rest/bug/attachment/12?api_key=$key.dev {"ids":[12,5],"summary":"x"} -> | attachments.0.id=12`},
		{"wrong-values", quirk(tracker.QuirkWrongValues), `
			- GET /rest/bug/attachment/6 -> | attachments.6.summary="flagged attachment (altered)"
			- PUT /rest/bug/attachment/6?api_key=$key.dev {"summary":"x"} -> | attachments.0.changes.summary.added="x"
			- POST /_tracker/quirks -> ?200 | quirks=0
			- GET /rest/bug/attachment/6 -> | attachments.6.summary="x"
			- POST /_tracker/quirks ["wrong-values"] -> ?200 | quirks=1
			- POST /_tracker/quirks nope -> ?400
			- GET /rest/bug/attachment/6 -> | attachments.6.summary="x (altered)"`},
		{"volatile", quirk(tracker.QuirkVolatile), `
			- GET /rest/bug/attachment/6
			set first attachments.6.served_as
			- GET /rest/bug/attachment/6 -> | attachments.6.served_as is text | . lacks $first`},
		{"wrong-group-values", tracker.Options{Seed: tracker.SeedDemo, Quirks: []tracker.Quirk{tracker.QuirkWrongGroupValues}}, `
			- GET /rest/flag_type/WebShop<<|?api_key=DemoreviewerKey0000000000000000000000000>> -> | attachment.0.values.3
			- GET /rest/flag_type/WebShop?api_key=DemodeveloperKey000000000000000000000000 -> | !attachment.0.values.3`},
		{"demo", tracker.Options{Seed: tracker.SeedDemo}, `
			- GET /rest/flag_type/WebShop?component=Search/Ranking -> | bug.3.name="ranking-impact"
			- GET /rest/flag_type/Internal%20Tools -> 401 106
			- POST /rest/flag_type?api_key=` + tracker.Keys(tracker.SeedDemo)["editor@demo.example"] + ` {"name":"docs","description":"d"} -> | id=11
			- GET /rest/bug/lost-basket/attachment -> | bugs.1.0.flags.0.requestee="reviewer@demo.example"
			- POST /rest/bug/3/attachment?api_key=` + tracker.Keys(tracker.SeedDemo)["ci-bot@demo.example"] + ` ` + patch + ` -> | ids.0=9
			- GET /rest/bug?api_key=` + tracker.Keys(tracker.SeedDemo)["developer@demo.example"] + ` -> | bugs.11 | !bugs.12`},
		{"BMO", bmo, `
			- GET /rest/version -> | version="20260820.1"
			- GET /rest/flag_type/TestProduct -> 404 32614
			editor POST /rest/flag_type {"name":"x","description":"d"} -> 404 32614
			- GET /rest/whoami -> 401 410
			dev GET /rest/whoami -> | name="dev@example.com"
			admin GET /rest/whoami?api_key=$key.dev -> | name="admin@example.com"
			dev POST /rest/bug/7/attachment ` + patch + ` -> | attachments.16.file_name="f.patch" | attachments.16.data="LS0tCg=="
			header Accept: text/html
			- GET /rest/bug/attachment/16 -> | attachments.16.attacher="dev@example.com" | attachments.16.description="s"
			dev PUT /rest/bug/attachment/16 {"ids":[[16]],"summary":"x"} -> 400 32000
			dev PUT /rest/bug/attachment/16 {"bug_flags":[],"summary":"x"} -> | attachments.0.changes.summary.added="x"
			header Accept:
			header Authorization: Bearer $key.dev
			- GET /rest/whoami -> 401 410
			- GET /rest/flag_types/TestProduct/none -> 404 51
			- POST /jsonrpc.cgi {"id":1,"method":"Bugzilla.version"} -> ?404
			- GET /rest/product?names=Product/With/Slash&include_fields=components.flag_types -> | products.0.components.0.flag_types.bug.0.name="slashonly" | products.0 keys ["components"]
			- GET /rest/product?names=%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC&include_fields=name -> ? | code=100500`},
		{"Harmony", harmony, `
			dev POST /rest/bug {"product":"TestProduct","component":"Component A","version":"unspecified"<<,"summary":"s"|,"bug_type":"defect">>} -> 400 50
			- POST /rest/bug {"product":"TestProduct","component":"Component A","version":"unspecified","summary":"s","bug_type":"defect"} -> 401 410
			dev POST /rest/bug {"product":"TestProduct","component":"Component A","version":"unspecified","summary":"s","bug_type":"defect"} -> 200
			- POST /jsonrpc.cgi {"id":1,"method":"Bugzilla.version","params":[{"product":"TestProduct"}]} -> ? | result.version="20200805.1"
			- POST /jsonrpc.cgi {"id":1,"method":"FlagType.get","params":[{"product":"TestProduct"}]} -> ? | result=null
			- GET /rest/flag_types/TestProduct/none -> 400 51
			admin GET /rest/whoami?api_key=$key.dev -> | name="dev@example.com"
			- GET /rest/product?names=%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC&include_fields=name -> | products.0.name="Ünïcode 日本"`},
	} {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			server := process.Reference(t, each.options)
			h := &environment{tracker: server, client: &client{base: process.Listen(t, server).String(), keys: keys()}}
			if err := steps(h).run(t, each.steps); err != nil {
				t.Error(err)
			}
		})
	}
}
