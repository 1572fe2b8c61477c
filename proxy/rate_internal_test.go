package proxy

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"portico/upstream"
)

func caller(address string, credentials upstream.Credentials) upstream.Caller {
	return upstream.Caller{Address: address, Credentials: credentials}
}

func TestRatesPerCaller(t *testing.T) {
	rates := newCallerRates(RateLimits{Anonymous: Rate{PerSecond: 1, Burst: 2}, Keyed: Rate{PerSecond: 10, Burst: 3}})
	now := time.Now()
	nobody, known := caller("192.0.2.1", upstream.Credentials{}), caller("192.0.2.9", upstream.Credentials{APIKey: "k"})
	for i, c := range []struct {
		later  time.Duration
		caller upstream.Caller
		wait   time.Duration
	}{
		{0, nobody, 0},
		{0, nobody, 0},
		{0, nobody, time.Second},
		{0, nobody, time.Second}, // a refused call costs nothing
		{0, caller("192.0.2.2", upstream.Credentials{}), 0},
		{0, known, 0},
		{0, known, 0},
		{0, known, 0},
		{0, known, 100 * time.Millisecond},
		{0, caller("192.0.2.9", upstream.Credentials{Authorization: "Bearer k", APIKey: "k"}), 100 * time.Millisecond},
		{0, caller("198.51.100.1", upstream.Credentials{APIKey: "k"}), 100 * time.Millisecond},
		{100 * time.Millisecond, known, 0},
		{0, caller("192.0.2.9", upstream.Credentials{APIKey: "other"}), 0},
		{900 * time.Millisecond, nobody, 0},
		{0, caller("2001:db8::1", upstream.Credentials{}), 0},
		{0, caller("2001:db8::2", upstream.Credentials{}), 0},
		{0, caller("2001:db8::3", upstream.Credentials{}), time.Second},
		{0, caller("2001:db8:0:1::3", upstream.Credentials{}), 0},
	} {
		now = now.Add(c.later)
		got, unproved := rates.take(now, c.caller)
		if got.Round(time.Millisecond) != c.wait {
			t.Errorf("call %d waits %v, want %v", i, got, c.wait)
		}
		if unproved {
			rates.accept(c.caller)
		}
	}
}

// Whoever makes up keys is bound by his address.
func TestMadeUpKeysAreNoWayAround(t *testing.T) {
	for _, keyed := range []Rate{{}, {PerSecond: 5, Burst: 5}} {
		rates := newCallerRates(RateLimits{Anonymous: Rate{PerSecond: 1, Burst: 4}, Keyed: keyed})
		now, through := time.Now(), 0
		for i := range 100 {
			if wait, _ := rates.take(now, caller("192.0.2.1", upstream.Credentials{APIKey: fmt.Sprint(i / 10)})); wait == 0 {
				through++
			}
		}
		if through != 4 {
			t.Errorf("keyed %v: %d of 100 came through", keyed, through)
		}
	}
}

func TestWhatASuccessProves(t *testing.T) {
	cookies := "Bugzilla_login=1; Bugzilla_logincookie=x"
	for name, c := range map[string]struct {
		shown       upstream.Credentials
		read, write bool
	}{
		"key":                    {upstream.Credentials{APIKey: "k"}, true, true},
		"bearer":                 {upstream.Credentials{APIKey: "k", Authorization: "Bearer k"}, true, true},
		"key and other cookies":  {upstream.Credentials{APIKey: "k", Cookies: "theme=dark"}, true, true},
		"login":                  {upstream.Credentials{Login: "l", Password: "p"}, true, true},
		"token":                  {upstream.Credentials{Token: "1-t"}, true, true},
		"token that is none":     {upstream.Credentials{Token: "t-1"}, false, true},
		"cookies":                {upstream.Credentials{Cookies: cookies}, false, true},
		"basic":                  {upstream.Credentials{Authorization: "Basic x"}, false, true},
		"key beside a login":     {upstream.Credentials{APIKey: "k", Login: "l", Password: "p"}, false, false},
		"key beside half of one": {upstream.Credentials{APIKey: "k", Login: "l"}, false, false},
		"key beside cookies":     {upstream.Credentials{APIKey: "k", Cookies: cookies}, false, false},
		"key beside basic":       {upstream.Credentials{APIKey: "k", Authorization: "Basic x"}, false, false},
	} {
		if read, write := proves(c.shown, false), proves(c.shown, true); read != c.read || write != c.write {
			t.Errorf("%s: read %v, write %v", name, read, write)
		}
	}
}

func TestBucketsAreBounded(t *testing.T) {
	b, prints, now := newBuckets(Rate{PerSecond: 1, Burst: 1}, 100), newFingerprints(), time.Now()
	first, through := prints.of("first"), 0
	for i := range 1000 {
		b.take(now, prints.of(fmt.Sprint(i)))
		if b.take(now, first) == 0 {
			through++
		}
	}
	if len(b.byKey) != 100 || b.order.Len() != 100 {
		t.Errorf("%d and %d are remembered", len(b.byKey), b.order.Len())
	}
	if through != 1 {
		t.Errorf("a caller that never stopped asking was forgotten %d times", through-1)
	}
}

// TestHandedTwice: two calls of one caller may be proved at the same time.
func TestHandedTwice(t *testing.T) {
	from, to, key, now := newBuckets(Rate{PerSecond: 1, Burst: 1}, 100), newBuckets(Rate{PerSecond: 1, Burst: 1}, 100), newFingerprints().of("a"), time.Now()
	for range 3 {
		from.take(now, key)
		from.hand(key, to)
	}
	if len(from.byKey)+from.order.Len() != 0 || len(to.byKey) != 1 || to.order.Len() != 1 {
		t.Errorf("%d and %d are left, %d and %d were taken in", len(from.byKey), from.order.Len(), len(to.byKey), to.order.Len())
	}
	if !to.holds(key) || to.take(now, key) == 0 {
		t.Error("a caller has got its calls anew")
	}
}

func TestRatesAreOffByDefault(t *testing.T) {
	if newCallerRates(RateLimits{Anonymous: Rate{Burst: 5}}) != nil {
		t.Error("a burst alone turned the limit on")
	}
}

func TestFingerprints(t *testing.T) {
	prints := newFingerprints()
	first := prints.of("a")
	if prints.of("a", "bc") == prints.of("ab", "c") || first == newFingerprints().of("a") || first != prints.of("a") {
		t.Error("fingerprints do not tell what they should")
	}
	same := [][2]upstream.Credentials{
		{{APIKey: "k"}, {APIKey: "k", Authorization: "Bearer k"}},
		{{Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}, {Cookies: "theme=dark; Bugzilla_logincookie=x; Bugzilla_login=1"}},
	}
	for _, pair := range same {
		if prints.credential(caller("", pair[0])) != prints.credential(caller("", pair[1])) {
			t.Errorf("%q and %q differ", pair[0].Cookies, pair[1].Cookies)
		}
	}
	seen := map[fingerprint]int{}
	for i, c := range []upstream.Credentials{
		{}, {APIKey: "k"}, {Token: "k"}, {Login: "k"}, {Password: "k"}, {Authorization: "Basic k"},
		{Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}, {Cookies: "Bugzilla_login=1; Bugzilla_logincookie=y"},
	} {
		print := prints.credential(caller("", c))
		if other, ok := seen[print]; ok {
			t.Errorf("credentials %d and %d are taken for the same", i, other)
		}
		seen[print] = i
		if text := fmt.Sprintf("%s %x", print[:], print); strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("k"))) {
			t.Error("a credential is kept in clear")
		}
	}
}
