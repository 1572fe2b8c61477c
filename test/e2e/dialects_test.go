package e2e

import (
	"testing"

	"portico/test/tracker"
)

// TestDialects: what differs before BMO and Harmony (tracker-behaviour.md section 14), whose dialect is found by their version. Both ignore an
// API key that is sent as a bearer token, and have no flag type writes.
func TestDialects(t *testing.T) { keep(t, "", dialects()) }

func dialects() []promise {
	mojolicious := []plan{{tracker: tracker.Options{Dialect: tracker.DialectBMO}}, {tracker: tracker.Options{Dialect: tracker.DialectHarmony}, cached: true}}
	const types, all = "/rest/flag_type/TestProduct", `type:granted.values=["X","?","+","-"]`
	plural := ""
	for _, place := range []string{"/TestProduct", "/TestProduct/Comp%20B", "/TestProduct?component=comp%2Fslash"} {
		plural += "dev GET /rest/flag_type" + place + "\ndev GET /rest/flag_types" + place + " -> | same\n"
	}
	plural += "dev GET /rest/flag_types/TestProduct%00 -> !400 32000\ndev GET /rest.cgi/flag_types/TestProduct\n"
	bearer := ""
	for range 2 {
		bearer += `
			- GET ` + types + ` -> | type:granted.values=["X"]
			header Authorization: Bearer $key.granter
			- GET ` + types + ` -> | ` + all + `
			header Authorization:
			granter GET ` + types + ` -> | ` + all
	}
	gateway := ""
	for _, token := range []string{"eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk-"} {
		gateway += `
			header Authorization: Bearer ` + token + `
			- GET ` + types + `<<|?>> -> | type:granted.values=["X"]
			sent Authorization: Bearer ` + token + `
			unsent X-Bugzilla-Api-Key`
	}
	return []promise{
		{"Dialects", "a slash is never sent in a path", mojolicious, `
			dev GET /rest/flag_type/<<TestProduct%2FComp%20B|Product%2FWith%2FSlash|Product%2FWith%2FSlash/x|Product%2FWith%2FSlash?component=x>> -> !400 53 | @Portico-Error=not-expressible
			reached 0
			dev GET ` + types + `/comp%2Fslash -> | !type:incexc
			unsent ^GET [^?]*%2F
			dev GET ` + types + `?component=comp%2Fslash -> | !type:incexc
			unsent ^GET [^?]*%2F
			dev GET /rest/flag_type/A%2BB%20%26%20C/100%25%20c`},
		{"Dialects", "the plural name is an alias", mojolicious, plural},
		{"Dialects", "the plural name is an alias of a stock tracker, too", both, plural + `
			editor POST /rest/flag_types {"name":"plural","description":"d"}
			set id id
			editor PUT /rest/flag_types/$id {"sortkey":5}
			- OPTIONS ` + "/rest/flag_types/TestProduct" + ` -> 200 | @Allow=GET, PUT`},
		{"Dialects", "writes of flag types are refused before other checks", mojolicious, `
			<<editor|->> <<POST /rest/flag_type|PUT /rest/flag_type/1|POST /rest/flag_types|PUT /rest/flag_types/1>> <<{"name":"n","description":"d"}|{"name":"n"}|{|[]>> -> !404 32614 | @Portico-Error=not-expressible
			reached 0`},
		{"Dialects", "OPTIONS lists what the tracker has", mojolicious, `
			- OPTIONS /rest/<<flag_type/TestProduct|flag_types/TestProduct|flag_type/TestProduct/Comp%20B>> -> 200 | @Allow=GET | @Access-Control-Allow-Methods=GET
			- OPTIONS /rest/bug/5/attachment -> 200 | @Allow=GET, POST | @Access-Control-Allow-Methods=GET, POST
			- OPTIONS /rest/bug/attachment/1 -> 200 | @Allow=GET, PUT | @Access-Control-Allow-Methods=GET, PUT
			- OPTIONS /rest/flag_type -> !404 32614`},
		{"Dialects", "a create is answered in both forms, with ids in order", mojolicious, `
			dev POST /rest/bug/7/attachment upload "ids":[7,8],"content_type":"text/plain" -> | ids=[16,17] | attachments keys ["16","17"] | attachments.16.id=16 | ` +
			`attachments.17.id=17 | attachments.*.summary="made by a test" | attachments.*.data="c29tZSBjb250ZW50Cg=="`},
		{"Dialects", "a key as a bearer token is the key of its owner", mojolicious, bearer + `
			header Authorization: Bearer $key.insider
			- GET <</rest/whoami|/rest/bug/attachment/2>>
			sent X-Bugzilla-Api-Key: $key.insider
			unsent Authorization:`},
		{"Dialects", "another bearer token stays one, and a caller of its own", mojolicious, gateway},
	}
}
