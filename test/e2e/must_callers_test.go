package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"portico/test/process"
)

// What must hold of the program as it runs, with processes of their own on both sides.

// served runs a test against a running Portico without a cache and with one, before a tracker that is a process too.
func served(t *testing.T, test func(t *testing.T, f *facade)) {
	t.Helper()
	for name, env := range map[string][]string{"uncached": {"CACHE_SCOPE=off"}, "cached": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, base := startTracker(t, process.FreeAddress(t))
			test(t, startFacade(t, base, env...))
		})
	}
}

func TestMust_SevenOperationsAnonymousAndWithEveryFormOfCredentials(t *testing.T) {
	served(t, func(t *testing.T, f *facade) {
		everyForm(t, f.client)
		for _, path := range []string{"/rest/flag_type/TestProduct", "/rest/bug/5/attachment", "/rest/bug/attachment/1"} {
			f.get(t, "", path).ok(t, 200)
		}
	})
}

// Whichever way a session ends, its token is worth nothing from then on.
func TestMust_ALogoutEndsReads(t *testing.T) {
	served(t, func(t *testing.T, f *facade) {
		for name, logOut := range map[string]func(token string){
			"REST":     func(token string) { f.get(t, "", "/rest/logout?token="+token).ok(t, 200) },
			"rest.cgi": func(token string) { f.get(t, "", "/rest.cgi/logout?Bugzilla_token="+token).ok(t, 200) },
			"JSON-RPC": func(token string) {
				f.do(t, ask{method: "POST", path: "/jsonrpc.cgi", body: `{"method":"User.logout","params":[{"token":"` + token + `"}],"id":1}`}).ok(t, 200)
			},
		} {
			token := f.login(t)
			read := "/rest/flag_type/TestProduct?token=" + token
			for range 3 {
				f.get(t, "", read).ok(t, 200)
			}
			logOut(token)
			if got := f.get(t, "", read); got.status != 400 {
				t.Errorf("after a logout by %s a read with the token gives %d, %q", name, got.status, got.header.Get("Cache-Status"))
			}
		}
	})
}

// valuesOf gives the values of a flag type of TestProduct that a user sees.
func (c *client) valuesOf(t testing.TB, user, flagType string) string {
	t.Helper()
	list, _ := c.get(t, user, "/rest/flag_type/TestProduct").ok(t, 200).field(t, flagType, "values").([]any)
	return fmt.Sprint(list)
}

func TestMust_TwoCallersSeeTheirOwnValues(t *testing.T) {
	served(t, func(t *testing.T, f *facade) {
		for round := range 3 {
			for user, want := range map[string]string{"granter": "[X ? + -]", "requester": "[X ?]", "dev": "[X]", "": "[X]"} {
				if got := f.valuesOf(t, user, "granted"); got != want {
					t.Errorf("round %d: %q sees the values %s of granted, want %s", round, user, got, want)
				}
			}
		}
	})
}

func TestMust_APrivateProductStaysInvisible(t *testing.T) {
	served(t, func(t *testing.T, f *facade) {
		for round := range 3 {
			member := f.get(t, "secret", "/rest/flag_type/SecretProduct").ok(t, 200)
			if _, found := member.flagType(t, "secretonly"); !found {
				t.Error("a member does not see the flag type")
			}
			if status := member.cacheStatus(); round > 0 && status == "fwd=miss" {
				t.Error("the cache has forgotten a read that nothing changed")
			}
			for _, user := range []string{"", "dev", "editor"} {
				f.get(t, user, "/rest/flag_type/SecretProduct").fails(t, 401, 106)
			}
		}
	})
}

func TestMust_AWriteIsVisibleThroughAnotherReplica(t *testing.T) {
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
		is(t, other.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200).field(t, "1", "description"), fmt.Sprintf("%q", want))
	}
}

func TestMust_CachedReadsDoNotReachTheTracker(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	f := startFacade(t, base, "TIMEOUTS_REDIS=10s") // a busy machine may take longer than 50 ms
	for _, user := range []string{"", "dev", "granter"} {
		for range 5 {
			f.get(t, user, "/rest/flag_type/TestProduct").ok(t, 200)
		}
	}
	tracker := &client{base: base}
	if asked := integer(t, tracker.do(t, ask{method: http.MethodGet, path: "/_tracker/requests"}).at(t, "requests", "flag_type.get")); asked != 3 {
		t.Errorf("the tracker was asked %d times by three callers", asked)
	}
	// A client that has the answer already is told so.
	first := f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200)
	again := f.do(t, ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", header: http.Header{"If-None-Match": {first.header.Get("Etag")}}})
	if again.status != http.StatusNotModified || len(again.body) != 0 {
		t.Errorf("status %d with %d bytes for a tag that matches", again.status, len(again.body))
	}
}
