package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

func scopesOf(all map[string]upstream.Credentials) map[scope]string {
	h, seen := newHasher([]byte("a secret of some length"), true), map[scope]string{}
	for name, have := range all {
		seen[h.credential(have)] += " " + name
	}
	return seen
}

func TestFormsOfOneKeyAreOneScope(t *testing.T) {
	scopes := scopesOf(map[string]upstream.Credentials{
		"key":     {APIKey: "secret-key"},
		"blanks":  {APIKey: " secret-key\t"},
		"bearer":  {APIKey: "secret-key", Authorization: "Bearer secret-key"},
		"bearer2": {APIKey: "secret-key", Authorization: "bearer  secret-key "},
		"login":   {APIKey: "secret-key", Login: "somebody"},
		"cookies": {APIKey: "secret-key", Cookies: "LASTORDER=x; BUGLIST=1:2"},
	})
	if len(scopes) != 1 {
		t.Errorf("there are %d scopes: %v", len(scopes), scopes)
	}
}

func TestDifferentCredentialsAreDifferentScopes(t *testing.T) {
	all := map[string]upstream.Credentials{
		"key":            {APIKey: "abc"},
		"other key":      {APIKey: "abd"},
		"key, case":      {APIKey: "ABC"},
		"token":          {Token: "abc"},
		"key and token":  {APIKey: "abc", Token: "abc"},
		"login":          {Login: "a", Password: "bc"},
		"login, moved":   {Login: "ab", Password: "c"},
		"other password": {Login: "a", Password: "bd"},
		"blank password": {Login: "a", Password: "bc "},
		"login and key":  {Login: "a", Password: "bc", APIKey: "abc"},
		"basic":          {Authorization: "Basic abc"},
		"basic and key":  {Authorization: "Basic abc", APIKey: "abc"},
		"bearer alone":   {Authorization: "Bearer abd", APIKey: "abc"},
		"cookies":        {Cookies: "Bugzilla_login=1; Bugzilla_logincookie=abc"},
		"other cookies":  {Cookies: "Bugzilla_login=1; Bugzilla_logincookie=abd"},
		"hidden cookie":  {Cookies: "x=1,Bugzilla_login=2; Bugzilla_logincookie=abc"},
		"no login":       {},
	}
	if scopes := scopesOf(all); len(scopes) != len(all) {
		t.Errorf("%d credentials make %d scopes: %v", len(all), len(scopes), scopes)
	}
}

func TestSecretsMakeDifferentScopes(t *testing.T) {
	have := upstream.Credentials{APIKey: "abc"}
	if newHasher([]byte("one"), true).credential(have) == newHasher([]byte("two"), true).credential(have) {
		t.Error("the secret makes no difference")
	}
}

func TestAnonymousCallersShare(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, patient(Options{}))
	for i := range 5 {
		caller := upstream.Caller{Address: fmt.Sprint("10.0.0.", i), UserAgent: fmt.Sprint(i)}
		caller.Credentials.Login = "a login alone is nothing"
		mustAsk(t, c, caller)
	}
	wantCalls(t, f, 1)
}

// TestReadsWithATokenAreNotKept: Portico is not told when its session ends. The local level has nothing either.
func TestReadsWithATokenAreNotKept(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, patient(Options{Settings: Settings{LocalTTL: time.Minute}}))
	session := upstream.Caller{Credentials: upstream.Credentials{Token: "8-session", APIKey: "k"}}
	for range 2 {
		if a := mustAsk(t, c, session); a.cache.Hit || a.cache.Stored || a.cache.Detail != detailToken {
			t.Errorf("an answer to a token says %+v", a.cache)
		}
	}
	wantCalls(t, f, 2)
	if reply, err := c.Peek(context.Background(), session, mapping.FlagTypesRequest{Product: "P"}); err == nil {
		t.Errorf("memory has an answer for a token: %+v", reply.Cache)
	}
	wantCalls(t, f, 2)
	f.scripted(always(errRefused))
	if a := ask(c, session); a.err == nil {
		t.Errorf("after the session an answer says %+v", a.cache)
	}
}

func TestOptionsShowNoSecret(t *testing.T) {
	o := Options{Secret: []byte("hush"), Redis: Redis{Addrs: []string{"h:1"}, Password: "hush"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb+verb, o, o.Redis); strings.Contains(text, "hush") {
			t.Errorf("%s shows %s", verb, text)
		}
	}
}

func TestNamesDoNotRunIntoEachOther(t *testing.T) {
	k, seen := newKeys("main", ""), map[string]bool{}
	for _, pair := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}, {"a|b", "c"}, {"\x02ab", "c"}} {
		seen[k.value(key{scope: scope{kind: kindAnonymous}, product: pair[0], component: pair[1]})] = true
	}
	if len(seen) != 6 {
		t.Errorf("six pairs of names make %d keys", len(seen))
	}
	if a, b := newKeys("a}{b", ""), newKeys("a", ""); a.prefix == b.prefix || strings.Count(a.prefix, "{") != 1 {
		t.Errorf("prefixes %q and %q", a.prefix, b.prefix)
	}
}

func TestForeignSecretIsAdopted(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	a := openCache(t, f, patient(on(s)))
	b := openCache(t, f, patient(on(s)))
	if a.shared.hasher.Load().secret != b.shared.hasher.Load().secret {
		t.Error("two processes on one Redis have different secrets")
	}
	own := on(s)
	own.Secret = []byte("one that the operator set")
	c := openCache(t, f, own)
	if c.shared.hasher.Load().secret != string(own.Secret) {
		t.Error("the operator's secret is not used")
	}
}
