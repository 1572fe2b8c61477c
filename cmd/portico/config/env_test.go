package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEnvironmentReachesEveryKindOfKey(t *testing.T) {
	cfg, problems := Load(nil, []string{
		"PORTICO_TRACKERS_MAIN_URL=http://a/",
		"PORTICO_TRACKERS_NEW_ONE_URL=https://b/",
		"PORTICO_TRACKERS_NEW_ONE_TIMEOUT=3s",
		"PORTICO_PRIMARY=new-one",
		"PORTICO_PASSTHROUGH=/xmlrpc.cgi, /jsonrpc.cgi",
		"PORTICO_TRUSTED_PROXIES=10.1.2.3/8,::1",
		"PORTICO_CACHE_REDIS_ADDRS=a:1,b:2",
		"PORTICO_CACHE_REDIS_TLS_ENABLED=true",
		"PORTICO_LIMITS_IDS=7",
		"PORTICO_LIMITS_BODY=1GiB",
		"PORTICO_LOG_LEVEL=",
		"PORTICO_CALLERS_CI_BOT_KEY_ENV=ONE", // and not that of a caller whose name ends in shadow
		"PORTICO_CALLERS_CI_BOT_SHADOW_KEY_ENV=OTHER",
		"ONE=1", "OTHER=2",
	}, "")
	if Fatal(problems) {
		t.Fatal(texts(problems))
	}
	if b := cfg.Trackers["new-one"]; b.URL != "https://b/" || b.Timeout != 3*time.Second || b.Dialect != "auto" {
		t.Errorf("tracker new-one is %+v", b)
	}
	want := map[string]Caller{"ci-bot": {Key: Secret{Env: "ONE", text: "1"}, ShadowKey: Secret{Env: "OTHER", text: "2"}, Keys: map[string]Secret{}}}
	if cfg.Primary != "new-one" || !reflect.DeepEqual(cfg.Callers, want) {
		t.Errorf("the primary is %s, and the callers are %+v", cfg.Primary, cfg.Callers)
	}
	if want := (Prefixes{"/xmlrpc.cgi", "/jsonrpc.cgi"}); !reflect.DeepEqual(cfg.Passthrough, want) {
		t.Errorf("passthrough is %q", cfg.Passthrough)
	}
	if got := cfg.TrustedProxies; len(got) != 2 || got[0].String() != "10.0.0.0/8" || got[1].String() != "::1/128" {
		t.Errorf("trusted proxies are %v", got)
	}
	if r := cfg.Cache.Redis; r.URL != "" || len(r.Addrs) != 2 || !r.TLS.Enabled {
		t.Errorf("redis is %+v", r)
	}
	if cfg.Limits.IDs != 7 || cfg.Limits.Body != 1<<30 || cfg.Log.Level != "info" {
		t.Errorf("limits are %+v, level %q", cfg.Limits, cfg.Log.Level)
	}
}

// TestProblemsOfVariablesNameThem: a variable that stands for no key is a problem, and what is wrong in a value is told of the variable, also
// where the file has an entry or a list of the same name.
func TestProblemsOfVariablesNameThem(t *testing.T) {
	for entry, want := range map[string]string{
		"PORTICO_LISTN=x":                  `PORTICO_LISTN: no key has this name; did you mean "PORTICO_LISTEN"?`,
		"PORTICO_TRACKER=http://a/":        `PORTICO_TRACKER: no key has this name; did you mean "PORTICO_TRACKERS_MAIN_URL"?`,
		"PORTICO_FOO=1":                    "PORTICO_FOO: no key has this name",
		"PORTICO_LIMITS_IDS=many":          `PORTICO_LIMITS_IDS: limits.ids: "many" is not a whole number`,
		"PORTICO_TRACKERS_URL=http://a/":   `PORTICO_TRACKERS_URL: no key has this name; did you mean "PORTICO_TRACKERS_MAIN_URL"?`,
		"PORTICO_CONFIG=/else.yaml":        "",
		"PORTICO_STATE=sqlite:x.db":        "",
		"PORTICO_SERVICE_HOST=10.0.0.1":    "",
		"PORTICO_ADMIN_SERVICE_PORT=9080":  "",
		"PORTICO_PORT=tcp://10.0.0.1:8080": "",
		"PORTICO_PORT_8080_TCP_ADDR=x":     "",
		"PORTICO_TRACKERS_OTHER_DIALECT=bmo": "c.yaml:1:1: primary: is missing: say which of main, other serves clients\n" +
			"PORTICO_TRACKERS_OTHER_DIALECT: trackers.other.url: is missing",
		"PORTICO_PASSTHROUGH=/a,b": `PORTICO_PASSTHROUGH: passthrough: "/a,b" is neither all nor none nor a list of path prefixes`,
	} {
		_, problems := Load(nil, []string{entry}, writeFile(t, "c.yaml", withTracker+"passthrough: [/a, /b]\n"))
		if got := strings.Join(texts(problems), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", entry, got, want)
		}
	}
}

func TestSecretsComeFromFileOrEnvironment(t *testing.T) {
	file := writeFile(t, "secret", "the password\n")
	cfg, problems := Load(nil, []string{
		"PORTICO_TRACKERS_MAIN_URL=http://a/",
		"PORTICO_CACHE_SECRET_ENV=PORTICO_CACHE_KEY",
		"PORTICO_CACHE_KEY=sixteen bytes or more\r\n", // a line end is no part of it
		"PORTICO_CACHE_REDIS_ADDRS=a:1",
		"PORTICO_CACHE_REDIS_PASSWORD_FILE=" + file,
	}, "")
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	if secret := cfg.Cache.Secret; secret.Text() != "sixteen bytes or more" || strings.Contains(fmt.Sprintf("%v %+v %s", secret, cfg.Cache, &secret), "sixteen") {
		t.Errorf("secret is %q, printed as %v", secret.Text(), secret)
	}
	if password := cfg.Cache.Redis.Password.Text(); password != "the password" {
		t.Errorf("password is %q", password)
	}
	for _, key := range []string{"cache.secret", "admin.token"} {
		_, problems := Load(nil, []string{"PORTICO_TRACKERS_MAIN_URL=http://a/", envName(key) + "_ENV=SHORT", "SHORT=is too short"}, "")
		if got, want := texts(problems), envName(key)+"_ENV: "+key+"_env: is shorter than 16 bytes"; !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNoTwoKeysShareAVariable(t *testing.T) {
	seen := map[string]string{}
	for _, p := range textPaths() {
		name := envName(p)
		if other, ok := seen[name]; ok {
			t.Errorf("%s stands for %s and %s", name, other, p)
		}
		seen[name] = p
		for _, other := range textPaths() {
			_, key, named := strings.Cut(envName(other), "*")
			entries, _, _ := strings.Cut(other, ".*")
			// Of two keys of which one ends like the other, the longer is meant.
			clash := named && other != p && strings.HasPrefix(name, envName(entries)) && strings.HasSuffix(name, key)
			if clash && !(strings.HasPrefix(p, entries+".*.") && len(p) > len(other)) {
				t.Errorf("%s could be %s of some entry", name, other)
			}
		}
		if name == envConfigFile || serviceLink.MatchString(name) {
			t.Errorf("%s, the variable of %s, means something else already", name, p)
		}
	}
}

// TestTheWaysToRedisBeatEachOther: one way in the environment beats the other in the file, and keeps the login, except that the embedded
// server has none.
func TestTheWaysToRedisBeatEachOther(t *testing.T) {
	const sentinels = "{addrs: ['a:1'], username: me, master_name: m}"
	for _, tt := range []struct {
		file, environ string
		want          Redis
	}{
		{"redis://a:1", "PORTICO_CACHE_REDIS_ADDRS=b:2", Redis{Addrs: []string{"b:2"}}},
		{"embedded", "PORTICO_CACHE_REDIS_ADDRS=b:2", Redis{Addrs: []string{"b:2"}}},
		{"{url: 'redis://a:1'}", "PORTICO_CACHE_REDIS_ADDRS=b:2", Redis{Addrs: []string{"b:2"}}},
		{"{addrs: ['b:2']}", "PORTICO_CACHE_REDIS_URL=redis://a:1", Redis{URL: "redis://a:1"}},
		{"{addrs: ['b:2']}", "PORTICO_CACHE_REDIS=redis://a:1", Redis{URL: "redis://a:1"}},
		{sentinels, "PORTICO_CACHE_REDIS=redis://b", Redis{URL: "redis://b", Username: "me"}},
		{sentinels, "PORTICO_CACHE_REDIS=embedded", Redis{URL: "embedded"}},
	} {
		cfg, problems := Load(nil, []string{tt.environ}, writeFile(t, "c.yaml", withTracker+"cache: {redis: "+tt.file+"}\n"))
		if Fatal(problems) || !reflect.DeepEqual(cfg.Cache.Redis, tt.want) {
			t.Errorf("%s and %s: %+v, %v", tt.file, tt.environ, cfg.Cache.Redis, texts(problems))
		}
	}
}

// TestPrintedValuesHaveNoSecrets: passwords in URLs are left out, and each value that is not a default names its origin.
func TestPrintedValuesHaveNoSecrets(t *testing.T) {
	cfg, problems := Load(nil, []string{"PORTICO_STATE=postgres://me:hunter2@db/portico?password=hunter2", "PORTICO_CACHE_REDIS=redis://:hunter2@cache"},
		writeFile(t, "c.yaml", withTracker))
	if len(problems) > 0 {
		t.Errorf("the environment is the place for passwords, but %q", texts(problems))
	}
	var printed strings.Builder
	must(t, Print(&printed, cfg))
	for _, want := range []string{
		"\nstate: postgres://REDACTED@db/portico?password=REDACTED # PORTICO_STATE\n", "  redis: redis://REDACTED@cache # PORTICO_CACHE_REDIS\n", "c.yaml:1:24\n",
		"timeout: 1m\n", "stale_if_error: 24h\n", "passthrough: all\n", "body: 128MiB\n",
	} {
		if !strings.Contains(printed.String(), want) || strings.Contains(printed.String(), "hunter2") {
			t.Errorf("%q is not in\n%s", want, &printed)
		}
	}
}
