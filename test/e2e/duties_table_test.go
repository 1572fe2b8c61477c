package e2e

import (
	"io"
	"net/http"
	"strings"

	"portico/test/tracker"
)

// responds responds to everything in place of a tracker.
func responds(status int, header, value, body string) []plan {
	return []plan{{before: stub(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(header, value)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})}}
}

// faulty is a tracker that fails all seven operations in one way.
func faulty(kind tracker.FaultKind) plan {
	return plan{tracker: tracker.Options{Faults: []tracker.Fault{{Op: "attachment.*", Kind: kind}, {Op: "flag_type.*", Kind: kind}}}}
}

// onlyCGI is a tracker that has no /rest.
func onlyCGI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RequestURI, "/rest/") {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func duties() []promise {
	const lost = "!502 200502 or !504 200504" // what became of a write is unknown
	obsolete := ""
	for _, value := range [][2]string{{`1`, `0`}, {`"1"`, `"0"`}, {`true`, `false`}, {`"true"`, `"false"`}, {`1`, `""`}} {
		obsolete += replaceAll(`
			dev PUT /rest/bug/attachment/5 {"is_obsolete":ON}
			dev GET /rest/bug/attachment/5 -> | attachments.5.is_obsolete=1
			dev PUT /rest/bug/attachment/5 {"is_obsolete":OFF}
			dev GET /rest/bug/attachment/5 -> | attachments.5.is_obsolete=0`, "ON", value[0], "OFF", value[1])
	}
	return []promise{
		{"Duties", "Duty_01_EveryOtherPathPassesUnchanged", once, passing(`
			- GET /rest/bug/1?include_fields=id,summary&include_fields=status
			- GET /rest/bug?id=1,2&product=TestProduct&Bugzilla_api_key=$key.dev
			- GET /rest/<<bug/1/comment|bug/1/history|field/bug/bug_status|product_accessible|product?type=accessible&names=A%2BB%20%26%20C|user?ids=1|parameters|whoami>>
			- GET /rest/<<user?match=dev&api_key=$key.admin|valid_login?login=dev%40example.com&api_key=$key.dev>>
			- POST /rest/bug/1/comment?api_key=$key.dev {"comment": "as it is",  "is_private": false}
			- PUT /rest/bug/1?Bugzilla_api_key=$key.dev {"ids":[1],"summary":"as it is"}
			- DELETE /rest/bug/1
			- PATCH /rest/bug/1 {}
			- GET /rest/no/such/resource?a=%20+%2B;b&&c=%zz
			- GET /<<show_bug.cgi?id=1|attachment.cgi?id=4|no/such/page|>>
			header Content-Type: application/x-www-form-urlencoded
			- POST /rest/bug/1/comment comment=a+b%26c
			header Content-Type:
			header User-Agent: ` + versionAsker + `
			- GET /rest/version`)},
		{"Duties", "Duty_03_XMLRPCPasses", once, `
			header User-Agent: Python-xmlrpc/3.11
			header Accept-Encoding: gzip
			- HEAD /xmlrpc.cgi -> ?200
			- POST /xmlrpc.cgi call Bug.add_attachment {"Bugzilla_api_key":"$key.dev","ids":[7],"data":{"base64":"c29tZSBi aW5hcnk="},"file_name":"b","summary":"by XML-RPC","content_type":"text/plain"} -> ?200 | .~<int>
			passes
			- POST /xmlrpc.cgi call Bug.attachments {"attachment_ids":[4]} -> ?200 | .~<int>1000000</int> | .~<base64>
			passes`},
		{"Duties", "Duty_18_NoWriteIsLostOrSentTwice", []plan{{tracker: optionsWith(tracker.QuirkKeepaliveDrop)}}, strings.Repeat(`
			- GET /rest/bug/1/attachment?include_fields=id
			dev POST /rest/bug/7/attachment upload "content_type":"text/plain"
			dev PUT /rest/bug/attachment/1 {"ids":[1],"summary":"changed"}
			dev POST /rest/bug/7/comment {"comment":"by another path"}`, 25) + `
			asked attachment.create 25
			asked attachment.update 25
			asked comment.create 25
			executed 75`},
		{"Duties", "Duty_05_HeaderCredentialsAreTurned", sending(once, // npm bugzilla sends the key in both headers
			[2]string{"X-Bugzilla-Api-Key: $key.admin\nAuthorization: Bearer $key.admin"}, [2]string{"X-Bugzilla-Token: $token"}), `
			- GET /rest/bug/4/attachment
			sent ^GET \S*[?&]Bugzilla_(api_key=$key.admin|token=[0-9]+-\w+)[&\n]
			- PUT /rest/bug/attachment/1 {"summary":"s"}
			sent \n\{.*"Bugzilla_(api_key":"$key.admin"|token":"[0-9]+-\w+")
			unsent ^PUT \S*Bugzilla_
			- GET /rest/bug/4?include_fields=id
			sent ^GET \S*[?&]Bugzilla_(api_key=$key.admin|token=[0-9]+-\w+)[&\n]`},
		{"Duties", "Duty_05_AnEmptyHeaderIsNoKey", sending(once, [2]string{"X-Bugzilla-Api-Key: \nUser-Agent: bugbot"}), `
			- GET /rest/bug/5/attachment
			sent ^GET [^?\s]+\n
			- GET /rest/bug/attachment/1
			sent ^GET [^?\s]+\n
			- GET /rest/flag_type/TestProduct
			sent ^GET [^?\s]+\n
			- GET /rest/bug/1
			sent ^GET [^?\s]+\n
			- PUT /rest/bug/attachment/1 {"summary":"s"} -> 401 410`},
		{"Duties", "Duty_08_ContentTypeOfAnyKind", sending(once, [2]string{"Content-Type: application/json\nUser-Agent: python-bugzilla/3.2.0"},
			[2]string{"Content-Type: application/json; charset=utf-8"}, [2]string{"Content-Type: text/plain"}, [2]string{"Content-Type: application/vnd.api+json"},
			[2]string{"Content-Type: APPLICATION/JSON"}, [2]string{"Content-Type: nonsense"}), `
			- GET /rest/bug/5/attachment
			dev PUT /rest/bug/attachment/1 {"summary":"of this type"}
			- GET /rest/bug/attachment/1 -> | attachments.1.summary="of this type"
			header Content-Type: application/x-www-form-urlencoded
			- PUT /rest/bug/attachment/1 ids=1&summary=by+a+form&is_patch=1&Bugzilla_api_key=$key.dev
			- GET /rest/bug/attachment/1 -> | attachments.1.summary="by a form"`},
		{"Duties", "Duty_15_ErrorsAreCompactAndBeginWithAKnownMember", both, replaceAll(`
			- POST /rest.cgi/bug/7/attachment upload COMPACT
			dev POST /rest.cgi/bug/7/attachment { COMPACT
			dev POST /rest/bug/7/attachment {} COMPACT
			<<dev|invalid>> POST /rest/bug/99999/attachment upload "content_type":"text/plain" COMPACT
			- GET /rest/<<bug/4/attachment|flag_type/No|flag_type/TestProduct/No|bug/attachment/x|bug/attachment/1/>> COMPACT
			editor PUT /rest/flag_type/99999 {"sortkey":5} COMPACT
			editor PUT /rest/bug/attachment {"ids":[1]} COMPACT`,
			"COMPACT", `-> ? | .~^\{"(error|code|message|documentation)":([^"\r\n\t]|"[^:]|":\S)*$`)},
		{"Duties", "Duty_19_TheClientsAddressGoesOn", once, replaceAll(`
			- GET /rest/login?login=admin%40example.com&password=adminpass1A%21&restrict_login=true
			ADDRESS
			- GET /rest/bug/5/attachment
			ADDRESS
			header X-Forwarded-For: 192.0.2.7
			- GET /rest/bug/1
			ADDRESS`, "ADDRESS", `sent \nX-Forwarded-For: 127\.0\.0\.1\r\n`)},
		{"Duties", "Duty_21_JSONRPCPasses", once, passing(`
			header User-Agent: unset/0
			- POST /jsonrpc.cgi {"jsonrpc":"1.0","method":"Bug.get","params":[{"ids":[1]}],"id":"identifier"}
			- POST /jsonrpc.cgi {"method" : "Bugzilla.version", "params": [], "id": 7 }
			- POST /jsonrpc.cgi no JSON at all
			- GET /jsonrpc.cgi?method=Bugzilla.version`)},
		{"Duties", "Duty_01_TheVersionComesFirst", once, `- GET /rest/version -> | .={"version":"5.2+"}`},
		{"Duties", "Duty_02_ABadKeyIsTheTrackersBusiness", both, operations("invalid", "/rest", "400 306") + operations("revoked", "/rest", "400 306") + `
			disabled GET /rest/flag_type/TestProduct -> 401 301`},
		{"Duties", "Duty_04_AnAnswerThatIsNoJSONBecomesAnError", []plan{faulty(tracker.FaultError500), faulty(tracker.FaultHTML200),
			faulty(tracker.FaultEmpty200), faulty(tracker.FaultTruncateJSON)}, operations("admin", "/rest", lost)},
		{"Duties", "Duty_04_InternalErrorsAreNoSuccess", []plan{faulty(tracker.FaultInternal)}, operations("admin", "/rest", "500 100500")},
		// Without the challenge no client would ever send the web server what it asks for.
		{"Duties", "Duty_04_TheChallengeOfAWebServerGoesOn", responds(401, "WWW-Authenticate", `Basic realm="staff"`, "<html>who are you"),
			operations("admin", "/rest", `!401 200401 | @Www-Authenticate=Basic realm="staff"`) + `
			admin GET /rest/bug/1 -> ? | @Www-Authenticate=Basic realm="staff"`},
		{"Duties", "Duty_05_KeyInHeaderAndQuery", once, `admin GET <</rest/bug/4/attachment?Bugzilla_|/rest/bug/4?>>api_key=$key.admin`},
		{"Duties", "Duty_05_KeyInHeaderAndBodyOfOtherPaths", once, `
			admin POST /rest/bug/4/comment {"comment":"whose is this","Bugzilla_api_key":"$key.secret"}
			secret GET /rest/bug/4/comment?api_key= -> | .~whose is this | bugs.4.comments.*.creator order "secret@example.com"\]$`},
		{"Duties", "Duty_06_EmptyMembersAreKept", both, `
			- GET /rest/bug/2/attachment -> | .={"bugs":{"2":[]},"attachments":{}}
			- GET /rest/bug/attachment/99999 -> | .={"bugs":{},"attachments":{}}
			- GET /rest/bug/2/attachment?ids=7&ids=8 -> | .={"bugs":{"2":[],"7":[],"8":[]},"attachments":{}}
			- GET /rest/bug/attachment/5 -> | attachments.5.flags=[]
			- GET /rest/bug/10/attachment -> | bugs.10.0.flags=[]
			dev PUT /rest/bug/attachment/1 {"ids":[1]} -> | attachments.0.changes={}
			editor PUT /rest/flag_type/no-such-name {"sortkey":1} -> | .={"flagtypes":[]}`},
		{"Duties", "Duty_07_FieldsAreFiltered", both, filtered("/rest/bug/attachment/5", `{"bugs":{},"attachments":{"5":{"id":5,"size":1}}}`) +
			filtered("/rest/bug/5/attachment", `{"bugs":{"5":[{"id":11,"size":12}]},"attachments":{}}`) + `
			- GET /rest/bug/attachment/4?exclude_fields=data -> | !attachments.4.data | attachments.4.summary`},
		{"Duties", "Duty_08_IDsAsStringsOrNotAtAll", once, `
			dev PUT /rest/bug/attachment/1 {<<"ids":["1"],"summary":"a"|"ids":["1",5],"summary":"b"|"ids":"1","summary":"c"|"ids":1,"summary":"d"|"summary":"e">>} -> | attachments.0.id=1 | attachments.0.changes.summary
			- GET /rest/bug/attachment/1 -> | attachments.1.summary="e"
			dev POST /rest/bug/7/attachment upload <<"ids":["7"],|"ids":["7",8],|"ids":"7",|"ids":7,||"ids":["alias-eight",7],>>"content_type":"text/plain"`},
		{"Duties", "Duty_08_BooleansAsZeroAndOne", once, `
			dev GET /rest/bug/attachment/3
			set file attachments.3.file_name
			set type attachments.3.content_type
			set patch attachments.3.is_patch
			set private attachments.3.is_private
			set old attachments.3.is_obsolete
			dev PUT /rest/bug/attachment/3 {"summary":"sent back","comment":"","flags":[],"file_name":"$file","content_type":"$type","is_patch":$patch,"is_private":$private,"is_obsolete":$old} -> ` +
			`| attachments.0.changes={"summary":{"removed":"obsolete patch","added":"sent back"}}` + obsolete},
		{"Duties", "Duty_08_UnknownMembersGoOn", once, `
			dev POST /rest/bug/7/attachment upload "content_type":"text/plain","encoding":"base64","bug_flags":[{"a":[1,2.50,null]}],"minor_update":1
			sent "encoding":"base64".*"bug_flags":\[\{"a":\[1,2.50,null\]\}\].*"minor_update":1
			dev PUT /rest/bug/attachment/1 {"ids":[1],"summary":"s","minor_update":1} -> 400 67399 | @Portico-Error=
			editor POST /rest/flag_type type n "colour":"red"
			editor PUT /rest/flag_type/1 {"colour":"red"} -> 400 67399`},
		{"Duties", "Duty_09_CreatedIDsAreIntegers", once, `
			dev POST /rest/bug/7/attachment upload "ids":["7","8"],"content_type":"text/plain" -> | ids.1 | !ids.2 | ids.* is integer
			editor POST /rest/flag_type type n -> | id is integer | flag_id is integer`},
		{"Duties", "Duty_10_IDsOfTheQueryJoinThePath", both, `
			- GET /rest/bug/2/attachment?ids=7&ids=10&include_fields=id -> | .={"bugs":{"2":[],"7":[],"10":[{"id":13},{"id":14}]},"attachments":{}}
			- GET /rest/bug/attachment/1?attachment_ids=5&attachment_ids=11&include_fields=id&include_fields=bug_id -> ` +
			`| .={"bugs":{},"attachments":{"1":{"id":1,"bug_id":1},"5":{"id":5,"bug_id":1},"11":{"id":11,"bug_id":5}}}
			- GET /rest/bug/10/attachment?ids=10&ids=2&exclude_fields=data&include_fields=id -> | .={"bugs":{"10":[{"id":13},{"id":14}],"2":[]},"attachments":{}}
			- GET /rest/bug/<<2/attachment?attachment_ids=13|attachment/13?ids=2>>&include_fields=id -> | .={"bugs":{"2":[]},"attachments":{"13":{"id":13}}}`},
		{"Duties", "Duty_11_StatusesAreTheTrackers", both, `
			dev POST /rest/bug/7/attachment upload "content_type":"text/plain" -> 201
			editor POST /rest/flag_type type n -> 201
			invalid GET /rest/<<bug/5/attachment|flag_type/TestProduct>> -> 400 306
			- GET /rest/bug/99999/attachment -> 404 101
			- GET /rest/bug/4<<|/attachment>> -> 401 102
			- POST /rest/bug/7/attachment upload "content_type":"text/plain" -> 401 410
			editor PUT /rest/flag_type/99999 {"sortkey":1} -> 404 51
			plain PUT /rest/bug/attachment/1 {"summary":"s"} -> 400 32000`},
		{"Duties", "Duty_11_AForbiddenStaysOne", responds(403, "Content-Type", "application/json", `{"error":true,"code":123,"message":"m","documentation":"d"}`),
			operations("admin", "/rest", "403 123") + `- GET /rest/bug/1 -> 403 123`},
		{"Duties", "Duty_12_NoErrorKeyInASuccess", both, operations("admin", "/rest", "")},
		{"Duties", "Duty_13_TimesAreOfOneShape", both, `
			- GET /rest/bug/attachment/6 -> | attachments.6.creation_time is time | attachments.6.last_change_time is time | attachments.6.flags.* is flag
			dev POST /rest/bug/7/attachment upload "content_type":"text/plain","flags":[{"name":"review","status":"?"}]
			set id ids.0
			- GET /rest/bug/attachment/$id -> | attachments.$id.creation_time is time | attachments.$id.last_change_time is time | attachments.$id.flags.* is flag
			dev PUT /rest/bug/attachment/1 {"summary":"s"} -> | attachments.0.last_change_time is time`},
		{"Duties", "Duty_14_RestCGIIsTheSame", both, operations("admin", "/rest.cgi", "") + anonymousOperations("/rest.cgi") + `
			- GET /rest.cgi/<<version|flag_type/TestProduct/comp%2Fslash>>
			editor POST /rest.cgi/flag_type type n "sortkey":0 -> !400 1104
			dev PUT /rest.cgi/bug/attachment {"ids":[1]} -> !404 32614`},
		{"Duties", "Duty_14_ATrackerWithRestCGIOnly", []plan{{before: onlyCGI}}, operations("admin", "/rest.cgi", "") + operations("admin", "/rest", "")},
		{"Duties", "Duty_16_BooleansOfAttachmentsAreIntegers", both, `
			insider GET /rest<<|.cgi>>/bug/1/attachment?exclude_fields=data -> | bugs.1.*.is_private~^[01]$ | bugs.1.*.is_obsolete~^[01]$ | bugs.1.*.is_patch~^[01]$`},
		{"Duties", "Duty_19_CookiesAreNeverShared", both, `
			- GET <</rest/flag_type/TestProduct|/rest/flag_type/TestProduct|/rest/flag_type/TestProduct>> -> | @Set-Cookie=`},
		{"Duties", "Duty_19_AnswersMayBeReadFromElsewhere", both, `
			- GET /rest/<<bug/5/attachment|flag_type/TestProduct|flag_type/TestProduct|bug/1>> -> | @Access-Control-Allow-Origin=*
			- GET /rest/flag_type/No -> 401 106 | @Access-Control-Allow-Origin=*
			- POST /rest/flag_type {} -> !401 410 | @Access-Control-Allow-Origin=*`},
		{"Duties", "Duty_19_PreflightAllowsTheCredentialHeaders", once, replaceAll(`
			header Origin: https://elsewhere.example
			header Access-Control-Request-Method: GET
			header Access-Control-Request-Headers: x-bugzilla-api-key,content-type
			header X-Bugzilla-Api-Key: $key.invalid
			- OPTIONS /rest<<|.cgi>>/<<flag_type/TestProduct|bug/attachment/1>> -> 200 | @Allow=GET, PUT | @Access-Control-Allow-Methods=GET, PUT | ALLOWED
			- OPTIONS /rest/flag_type -> 200 | @Allow=POST | ALLOWED
			- OPTIONS /rest/flag_type/TestProduct/TestComponent -> 200 | @Allow=GET | ALLOWED
			- OPTIONS /rest/bug/1/attachment -> 200 | @Allow=GET, POST | ALLOWED
			- OPTIONS /rest/bug/1 -> 200 | @Allow~GET | @Allow~PUT | ALLOWED
			- OPTIONS /rest/no/such/thing -> 404 32614`, "ALLOWED", `.={} | @Access-Control-Allow-Origin=* | @Access-Control-Allow-Headers~x-bugzilla-api-key | `+
			`@Access-Control-Allow-Headers~x-bugzilla-token | @Access-Control-Allow-Headers~authorization | @Access-Control-Allow-Headers~content-type | `+
			`@Access-Control-Allow-Headers~accept | @Access-Control-Allow-Headers~origin | @Access-Control-Allow-Headers~x-requested-with`)},
		{"Duties", "Duty_17_ARedirectOfTheTrackerIsNotPassedOn", responds(302, "Location", "https://sso.example/login", ""),
			replaceAll(operations("admin", "/rest", lost), "\n", " | @Location=\n")},
	}
}

func filtered(path, want string) string {
	return `- GET ` + path + `?<<include_fields=id,size|include_fields=id&include_fields=size|include_fields=id%20size|include_fields=id+size|` +
		`include_fields=id,size,data&exclude_fields=data|include_fields=id&include_fields=size,data&exclude_fields=data&exclude_fields=summary>> -> | .=` + want + "\n"
}

// optionsWith gives a reference tracker with quirks.
func optionsWith(quirks ...tracker.Quirk) tracker.Options { return tracker.Options{Quirks: quirks} }

// passing wants each request to reach the tracker as it is, and its response to reach the client.
func passing(steps string) string {
	text := ""
	for line := range strings.Lines(steps) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "header ") {
			text += line + "\n"
			continue
		}
		for _, one := range alternatives(line) {
			text += one + " -> ?\npasses\n"
		}
	}
	return text
}
