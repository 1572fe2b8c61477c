package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

func scopesOf(all map[string]upstream.Credentials) map[scope]string {
	h, seen := newHasher([]byte("a secret of some length"), true), map[scope]string{}
	for name, have := range all {
		seen[h.credential(upstream.Caller{Credentials: have})] += " " + name
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
		"page token":     {Cookies: "Bugzilla_login=1; Bugzilla_logincookie=abc", PageToken: "t"},
		"hidden cookie":  {Cookies: "x=1,Bugzilla_login=2; Bugzilla_logincookie=abc"},
		"no login":       {},
	}
	if scopes := scopesOf(all); len(scopes) != len(all) {
		t.Errorf("%d credentials make %d scopes: %v", len(all), len(scopes), scopes)
	}
	key := upstream.Caller{Credentials: all["key"]}
	if newHasher([]byte("one"), true).credential(key) == newHasher([]byte("two"), true).credential(key) {
		t.Error("the secret makes no difference")
	}
}

// TestCallersBehindOtherKeys: an entry is of the key that the tracker saw. After a change of the settings, and at processes with other ones, it is
// not shown to a caller who stands for another key there.
func TestCallersBehindOtherKeys(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	behind := func(keys func(upstream.Caller) (upstream.Caller, error)) *Cache {
		options := on(s)
		options.Keys, options.LocalTTL = keys, time.Minute
		return openCache(t, f, options)
	}
	as := func(key string) func(upstream.Caller) (upstream.Caller, error) {
		return func(upstream.Caller) (upstream.Caller, error) { return withKey(key), nil }
	}
	refused := func(upstream.Caller) (upstream.Caller, error) { return upstream.Caller{}, errBadKey }
	service := behind(as("service"))
	mustAsk(t, service, withKey("k"))
	wantHit(t, service, "k", "behind the same key")
	wantHit(t, behind(as("service")), "k", "in another process with the same settings")
	for name, other := range map[string]*Cache{"its own key": behind(nil), "another key": behind(as("other")), "no key": behind(refused)} {
		if a := ask(other, withKey("k")); a.cache.Hit {
			t.Errorf("behind %s the caller gets the entry of the service: %+v", name, a.cache)
		}
	}
	if a := ask(service, withKey("another caller")); a.cache.Hit {
		t.Error("another caller gets the entry")
	}
}

func TestAnonymousCallersShare(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{})
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
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
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
	a := openCache(t, f, on(s))
	b := openCache(t, f, on(s))
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

// groupsOf is a way to learn groups; a key that is not in the map is refused.
func groupsOf(all map[string]string) func(context.Context, upstream.Caller) ([]string, error) {
	return func(_ context.Context, caller upstream.Caller) ([]string, error) {
		names, ok := all[caller.Credentials.APIKey]
		if !ok {
			return nil, errBadKey
		}
		return strings.Fields(names), nil
	}
}

func TestGroupsShare(t *testing.T) {
	groups := map[string]string{"a": "x y", "b": "y x x", "c": "x", "d": ""}
	f := &fakeTracker{groups: groups}
	f.groups["b"] = "x y" // the tracker does not care for the order
	c := settled(t, openCache(t, f, Options{
		Settings: Settings{Scope: ScopeGroup, LocalTTL: time.Minute},
		Groups:   groupsOf(map[string]string{"a": "x y", "b": "y x x", "c": "x", "d": ""}),
	}))
	for range 3 {
		for _, key := range []string{"a", "b", "c", "d", ""} {
			mustAsk(t, c, withKey(key))
		}
	}
	wantCalls(t, f, 4) // {x y}, {x}, {}, anonymous
}

func TestUnknownGroupsDoNotShare(t *testing.T) {
	f := &fakeTracker{}
	f.scripted(func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) error {
		if caller.Credentials.APIKey == "bad" {
			return errBadKey
		}
		return nil
	})
	c := openCache(t, f, Options{Settings: Settings{Scope: ScopeGroup}, Groups: groupsOf(map[string]string{"good": "x"})})
	for range 3 {
		mustAsk(t, c, withKey("good"))
		wantCode(t, ask(c, withKey("bad")).err, 306)
	}
	wantCalls(t, f, 1+3)
}

func TestRevokedMemberDoesNotHarmTheGroup(t *testing.T) {
	f := &fakeTracker{}
	var revoked atomic.Bool
	f.scripted(func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) error {
		if revoked.Load() && caller.Credentials.APIKey == "a" {
			return errBadKey
		}
		return nil
	})
	clock := &clock{}
	c := openAt(t, f, Options{
		Settings: Settings{Scope: ScopeGroup, TTL: time.Minute, StaleIfError: time.Hour}, Lease: 10 * time.Millisecond,
		Groups: groupsOf(map[string]string{"a": "x", "b": "x"}), Redis: on(startServer(t)).Redis,
	}, clock.now)
	mustAsk(t, c, withKey("a"))
	revoked.Store(true)
	clock.forward(2 * time.Minute)
	wantCode(t, ask(c, withKey("a")).err, 306)
	f.scripted(always(errRefused))
	if a := mustAsk(t, c, withKey("b")); !a.cache.Stale {
		t.Errorf("the other member gets %+v", a.cache)
	}
}

func TestMemberIsNotRefusedForAnother(t *testing.T) {
	for name, c := range map[string]struct {
		refusal       error
		first, second string // their keys
	}{
		"bad key":                         {errBadKey, "a", "b"},
		"too many calls":                  {&mapping.Error{Code: 32610, Status: http.StatusTooManyRequests}, "a", "b"},
		"anonymous, by a web server":      {mapping.RefusedByServer(http.StatusForbidden), "", ""},
		"anonymous, a header is too long": {errLongHeader, "", ""},
	} {
		refusal := c.refusal
		agent := func(key, agent string) upstream.Caller {
			caller := withKey(key)
			caller.UserAgent = agent
			return caller
		}
		f, hold, entered := &fakeTracker{}, make(chan struct{}), make(chan struct{}, 8)
		f.scripted(func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) error {
			if caller.UserAgent == "a" {
				entered <- struct{}{}
				<-hold
				return refusal
			}
			return nil
		})
		cache := settled(t, openCache(t, f, Options{
			Settings: Settings{Scope: ScopeGroup}, Groups: groupsOf(map[string]string{"a": "x", "b": "x"}),
		}))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- ask(cache, agent(c.first, "a")).err }()
		<-entered
		go func() { second <- ask(cache, agent(c.second, "b")).err }()
		time.Sleep(50 * time.Millisecond) // lets the second join; if it does not, it is right all the more
		close(hold)
		if err := <-first; err == nil || err.Error() != refusal.Error() {
			t.Errorf("%s: the member who asked gets %v", name, err)
		}
		if err := <-second; err != nil {
			t.Errorf("%s: the other member is refused: %v", name, err)
		}
	}
}

func TestErrorsOfGroupsAreNotAskedForEachTime(t *testing.T) {
	var asked atomic.Int64
	c := openCache(t, &fakeTracker{}, Options{Settings: Settings{Scope: ScopeGroup}, Groups: func(context.Context, upstream.Caller) ([]string, error) {
		asked.Add(1)
		return nil, errors.New("away")
	}})
	for range 5 {
		mustAsk(t, c, withKey("k"))
	}
	if asked.Load() != 1 {
		t.Errorf("the groups were asked for %d times", asked.Load())
	}
}

// memberOf is a cache where callers of one group share, with a way to say what
// becomes of the question for groups.
func memberOf(t *testing.T, f *fakeTracker, now func() time.Time) (c *Cache, fate *atomic.Pointer[func() error]) {
	t.Helper()
	fate = &atomic.Pointer[func() error]{}
	c = openAt(t, f, Options{
		Settings: Settings{Scope: ScopeGroup, TTL: time.Minute, StaleIfError: time.Hour}, FillTimeout: 20 * time.Second,
		Groups: func(context.Context, upstream.Caller) ([]string, error) {
			if fails := fate.Load(); fails != nil {
				return nil, (*fails)()
			}
			return []string{"x"}, nil
		},
	}, now)
	mustAsk(t, c, withKey("k"))
	return c, fate
}

// TestGroupsOutliveASickTracker: who shared an answer goes on to do so while the tracker can tell neither groups nor flag types, as long
// as old answers are given and no longer.
func TestGroupsOutliveASickTracker(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	c, fate := memberOf(t, f, clock.now)
	away := func() error { return errRefused }
	fate.Store(&away)
	f.scripted(always(errRefused))
	caller := withKey("k")
	own := c.credentialScope(&caller)
	for _, each := range []struct {
		after  time.Duration
		shares bool
	}{{30 * time.Minute, true}, {30 * time.Minute, true}, {10 * time.Minute, false}, {time.Minute, false}} {
		clock.forward(each.after)
		if shares := c.sharedScope(t.Context(), &caller, own) != own; shares != each.shares {
			t.Errorf("after another %s the caller shares: %t", each.after, shares)
		}
		if a := ask(c, caller); (a.err == nil && a.cache.Detail == detailIfError) != each.shares {
			t.Errorf("after another %s the answer says %+v, %v", each.after, a.cache, a.err)
		}
	}
}

// TestGroupsOfATrackerThatHangs: a read with known groups does not wait for long, and not at all for a tracker that is known to fail.
func TestGroupsOfATrackerThatHangs(t *testing.T) {
	f, clock, end := &fakeTracker{}, &clock{}, make(chan struct{})
	c, fate := memberOf(t, f, clock.now)
	hung := func() error { <-end; return errRefused }
	fate.Store(&hung)
	defer close(end)
	f.scripted(always(errRefused))
	clock.forward(5 * time.Minute)
	start := time.Now()
	for range 3 {
		if a := ask(c, withKey("k")); a.err != nil || !a.cache.Stale {
			t.Fatalf("while the tracker hangs the answer says %+v, %v", a.cache, a.err)
		}
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("three reads took %s", took)
	}
	c.setFailing(true)
	caller := withKey("k")
	own, least := c.credentialScope(&caller), groupsPatience
	for range 3 {
		begun := time.Now()
		if c.sharedScope(t.Context(), &caller, own) == own {
			t.Error("the groups that were known are lost")
		}
		least = min(least, time.Since(begun))
	}
	if least >= groupsPatience {
		t.Errorf("a failing tracker was waited for at least %s", least)
	}
}

// TestRefusedCredentialLosesItsGroups: only a tracker that is sick leaves them.
func TestRefusedCredentialLosesItsGroups(t *testing.T) {
	for name, err := range map[string]error{"refused": errBadKey, "not told": errors.New("it does not say")} {
		t.Run(name, func(t *testing.T) {
			f, clock := &fakeTracker{}, &clock{}
			c, fate := memberOf(t, f, clock.now)
			refused := func() error { return err }
			fate.Store(&refused)
			f.scripted(always(errRefused))
			clock.forward(5 * time.Minute)
			if a := ask(c, withKey("k")); a.err == nil {
				t.Errorf("the answer says %+v", a.cache)
			}
		})
	}
}
