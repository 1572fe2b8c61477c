package e2e

import (
	"fmt"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestCallers: what one caller sees and does is apart from the others, by the whole program.
func TestCallers(t *testing.T) { keep(t, "", callers()) }

func callers() []promise {
	const types, wrong = "/rest/flag_type/TestProduct", "WrongKey00000000000000000000000000000000"
	served := []plan{{program: true}, {program: true, env: []string{"CACHE_SCOPE=off"}}}
	asProgram := served[:1:1]
	logout := ""
	for _, call := range []string{
		"GET /rest/logout?token=$mine -> ?200", "GET /rest.cgi/logout?Bugzilla_token=$mine -> ?200",
		`POST /jsonrpc.cgi {"method":"User.logout","params":[{"token":"$mine"}],"id":1} -> ?200`,
	} {
		logout += `
			- GET /rest/login?login=admin%40example.com&password=adminpass1A%21
			set mine token
			- GET ` + types + `?<<token=$mine|token=$mine>>
			- ` + call + `
			- GET ` + types + `?token=$mine -> ?400`
	}
	own := strings.Repeat(`
		granter GET `+types+` -> | type:granted.values=["X","?","+","-"]
		requester GET `+types+` -> | type:granted.values=["X","?"]
		<<dev|->> GET `+types+` -> | type:granted.values=["X"]`, 3)
	secret := strings.Repeat(`
		secret GET /rest/flag_type/SecretProduct -> | type:secretonly
		<<-|dev|editor>> GET /rest/flag_type/SecretProduct -> 401 106`, 3)
	bearer := ""
	for _, token := range []string{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "WrongKey-0000000000000000000000000000000", wrong} {
		bearer += "header Authorization: Bearer " + token + "\n- GET /rest/version\n"
		for _, path := range []string{types, "/rest/bug/5/attachment", "/rest/bug/attachment/1", "/rest/bug/1?include_fields=id"} {
			bearer += "- GET " + path + "\nsent Authorization: Bearer " + token + "\nunsent Bugzilla_api_key\n"
		}
		bearer += "- GET /rest/bug/4/attachment -> 401 102\n"
	}
	beaten := sending(append(asProgram, plan{program: true, tracker: tracker.Options{Dialect: tracker.DialectBMO}}),
		[2]string{"X-Bugzilla-Login: admin@example.com\nX-Bugzilla-Password: wrong"}, [2]string{"X-Bugzilla-Token: 1-wrong"},
		[2]string{"X-Bugzilla-Api-Key: " + wrong}, [2]string{"Authorization: Bearer " + wrong})
	return []promise{
		{"Callers", "a token is worth nothing after a logout", served, logout},
		{"Callers", "each sees the values that it can set", served, own},
		{"Callers", "a private product stays invisible", served, secret},
		{"Callers", "cached reads do not reach the tracker", []plan{{program: true, env: []string{"TIMEOUTS_REDIS=10s"}}}, // a busy machine may take longer than 50 ms
			strings.Repeat("<<-|dev|granter>> GET "+types+"\n", 5) + `
			asked flag_type.get 3
			set tag @Etag
			header If-None-Match: $tag
			granter GET ` + types + ` -> ?304 | .~^$`},
		// As a stock tracker ignores headers.
		{"Callers", "a complete credential in the query or the body beats headers of every kind", beaten, `
			- GET /rest/<<bug/4/attachment?api_key=$key.admin|flag_type/SecretProduct?Bugzilla_api_key=$key.admin|bug/4?api_key=$key.admin>> -> ?200
			- GET /rest/<<bug/4/attachment|bug/4>>?login=admin%40example.com&password=adminpass1A%21 -> ?200
			- PUT /rest/bug/attachment/8?api_key=$key.admin {"summary":"s"} -> ?200
			- PUT /rest/bug/attachment/8 {"summary":"s","Bugzilla_api_key":"$key.admin"} -> ?200
			- PUT /rest/bug/4 {"summary":"s","api_key":"$key.admin"} -> ?200`},
		{"Callers", "without a password a login is no credential, and the headers count", asProgram, `
			admin GET /rest/bug/4<</attachment?login=admin%40example.com|?api_key=>>`},
		// The last address of X-Forwarded-For is the one that trackers count.
		{"Callers", "the tracker is told the client's address by a trusted proxy", []plan{{program: true, env: []string{"TRUSTED_PROXIES=127.0.0.1/32"}}}, `
			header X-Forwarded-For: 192.0.2.1
			- GET /rest/bug/attachment/1
			sent X-Forwarded-For: ([^\r]*, *)?192\.0\.2\.1\r
			- GET /rest/bug/1
			sent X-Forwarded-For: ([^\r]*, *)?192\.0\.2\.1\r`},
		// What works straight at a tracker works. A key as a bearer token is a key, and a bad key in any other form stays one. A write is never
		// sent twice, so a token that could be a key is judged as one.
		{"Callers", "the bearer token of a gateway is no key", asProgram, bearer + `
			header Authorization: Bearer $key.admin
			- GET /rest/bug/4<<|/attachment>>
			header Authorization: Bearer ` + wrong + `
			- PUT /rest/bug/attachment/1 {"summary":"s"} -> 400 306
			header Authorization:
			header X-Bugzilla-Api-Key: ` + wrong + `
			- GET /rest/bug/<<5/attachment|1>> -> 400 306`},
	}
}

func TestWritesAreVisibleThroughAnotherReplica(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	process.Redis(t, address)
	_, base := startTracker(t, process.FreeAddress(t))
	env := []string{"CACHE_REDIS=redis://" + address, "CACHE_LOCAL_TTL=0s"}
	one, other := startFacade(t, base, env...), startFacade(t, base, env...)
	for round := range 5 {
		for _, f := range []*facade{one, other} {
			f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200)
		}
		want := fmt.Sprint("round ", round)
		one.put(t, "editor", "/rest/flag_type/1", fmt.Sprintf(`{"description":%q}`, want)).ok(t, 200)
		other.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200).want(t, fmt.Sprintf("type:1.description=%q", want))
	}
}
