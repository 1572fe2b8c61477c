package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

// writeFile puts a configuration into a temporary folder.
var writeFile = process.File

var must = process.Must

// texts renders problems without the folder of the file.
func texts(problems []Problem) []string {
	list := []string{}
	for _, p := range problems {
		if p.origin.line > 0 {
			p.origin.source = filepath.Base(p.origin.source)
		}
		list = append(list, p.String())
	}
	return list
}

// mustLoad loads a configuration that has no problems.
func mustLoad(t *testing.T, environ []string, yaml string) Config {
	t.Helper()
	cfg, problems := Load(nil, environ, writeFile(t, "c.yaml", yaml))
	if len(problems) > 0 {
		t.Fatalf("%s: %q", yaml, texts(problems))
	}
	return cfg
}

// withTracker is the least that a configuration must say.
const withTracker = "trackers: {main: {url: 'http://tracker.example/'}}\n"

const notExpanded = "variables in the file are not expanded: give the value, or set a variable that begins with PORTICO_ in the environment"

func TestEveryProblemIsReportedAtItsPlace(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       []string
	}{
		{"nothing at all", "", []string{"c.yaml:1:1: trackers: is empty: name at least one, or give --config FILE or --tracker URL"}},
		{"only comments", "# nothing\n", []string{"c.yaml:1:1: trackers: is empty: name at least one, or give --config FILE or --tracker URL"}},
		{"least", withTracker, nil},
		{"empty sections mean the defaults", withTracker + "cache:\nlimits: ~\n", nil},
		{"unknown key", withTracker + "lisen: :80\n",
			[]string{`c.yaml:2:1: unknown key "lisen"; did you mean "listen"?`}},
		{"unknown key of another section", withTracker + "secret_file: x\n",
			[]string{`c.yaml:2:1: unknown key "secret_file"; did you mean "cache.secret_file"?`}},
		{"unknown key of every tracker", withTracker + "dialect: bmo\n",
			[]string{`c.yaml:2:1: unknown key "dialect"; did you mean "trackers.NAME.dialect"?`}},
		{"unknown key like nothing", withTracker + "cache:\n  entirely_else: 1\n",
			[]string{`c.yaml:3:3: unknown key "entirely_else" in cache`}},
		{"wrong case", withTracker + "Listen: :80\n",
			[]string{`c.yaml:2:1: unknown key "Listen"; did you mean "listen"?`}},
		{"twice", "listen: :80\n" + withTracker + "listen: :81\n",
			[]string{"c.yaml:3:1: listen: is set twice, first in line 1"}},
		{"several, in order", "log: {level: loud}\nlimits:\n  body: 5 apples\n  depth: deep\n  ids: 0\n" + withTracker + "cache: {ttl: 5}\n", []string{
			`c.yaml:1:14: log.level: "loud" is not one of debug, info, warn, error`,
			`c.yaml:3:9: limits.body: "5 apples" is not a size such as 64MiB, 10MB or 512`,
			`c.yaml:4:10: limits.depth: "deep" is not a whole number`,
			`c.yaml:5:8: limits.ids: 0 is less than 1`,
			`c.yaml:7:14: cache.ttl: "5" is not a duration such as 500ms, 30s or 5m`,
		}},
		{"fraction of a whole number", withTracker + "limits: {rate: {anonymous: {per_second: 0.5}}, queue: 1_000, ids: 0x10}\n",
			[]string{`c.yaml:2:41: limits.rate.anonymous.per_second: "0.5" is not a whole number`}},
		{"too much", withTracker + "limits: {header: 1GiB}\n",
			[]string{"c.yaml:2:18: limits.header: 1GiB is more than 16MiB"}},
		{"list for a text", withTracker + "listen: [a]\n", []string{"c.yaml:2:9: listen: cannot be a list"}},
		{"text for a section", withTracker + "limits: 5\n", []string{"c.yaml:2:9: limits: cannot be a plain value"}},
		{"mapping for a list", withTracker + "trusted_proxies: {a: b}\n", []string{"c.yaml:2:18: trusted_proxies: cannot be a mapping"}},
		{"no value", withTracker + "listen:\n", []string{"c.yaml:2:8: listen: has no value"}},
		{"list at the top", "- a\n", []string{
			"c.yaml:1:1: cannot be a list",
			"c.yaml:1:1: trackers: is empty: name at least one, or give --config FILE or --tracker URL",
		}},
		{"not YAML", "listen: :80\ntrackers: [\n", []string{"c.yaml:2:1: not valid YAML: did not find expected node content"}},
		{"second document", withTracker + "---\nlisten: :80\n", []string{"c.yaml:2:1: a second document begins here: one file is one configuration"}},
		{"merge key", withTracker + "limits:\n  <<: {depth: 5}\n", []string{`c.yaml:3:3: unknown key "<<" in limits`}},
		{"key that is no word", withTracker + "? [a]\n: b\n", []string{`c.yaml:2:3: unknown key ""`}},
		{"bad network", withTracker + "trusted_proxies: [10.0.0.0/8, 10.0.0.0/40]\n",
			[]string{`c.yaml:2:31: trusted_proxies[1]: "10.0.0.0/40" is not an address or network such as 10.0.0.0/8`}},
		{"tracker's name", "trackers: {Main_1: {url: 'http://a/'}, b: {url: 'http://b/'}}\n",
			[]string{`c.yaml:1:12: trackers: "Main_1" is not a name of lower-case letters, digits and hyphens`}},
		{"primary unknown", withTracker + "primary: mian\n",
			[]string{`c.yaml:2:10: primary: "mian" is not one of the trackers (main)`}},
		{"primary not said", "trackers: {a: {url: 'http://a/'}, b: {url: 'http://b/'}}\n",
			[]string{"c.yaml:1:1: primary: is missing: say which of a, b serves clients"}},
		{"url missing", "trackers:\n  main:\n    dialect: bmo\n", []string{"c.yaml:3:5: trackers.main.url: is missing"}},
		{"dialect", "trackers: {main: {url: 'http://a/', dialect: bugzila-5}}\n",
			[]string{`c.yaml:1:46: trackers.main.dialect: "bugzila-5" is not one of auto, bugzilla-5, bmo; did you mean "bugzilla-5"?`}},
		{"listeners", withTracker + "listen: nonsense\nadmin: {listen: ':99999'}\n", []string{
			`c.yaml:2:9: listen: "nonsense" is not an address such as 127.0.0.1:8080 or :8080`,
			`c.yaml:3:17: admin.listen: ":99999" is not an address such as 127.0.0.1:8080 or :8080`,
		}},
		{"same listener", withTracker + "admin: {listen: '127.0.0.1:8080'}\n",
			[]string{"c.yaml:2:17: admin.listen: is 127.0.0.1:8080, which listen (127.0.0.1:8080) takes already"}},
		{"same port on all interfaces", withTracker + "listen: '[::]:9080'\n",
			[]string{"c.yaml:1:1: admin.listen: is 127.0.0.1:9080, which listen ([::]:9080) takes already"}},
		{"same port by its name", withTracker + "listen: localhost:9080\n",
			[]string{"c.yaml:1:1: admin.listen: is 127.0.0.1:9080, which listen (localhost:9080) takes already"}},
		{"both on a free port", withTracker + "listen: ':0'\nadmin: {listen: 127.0.0.1:0}\n", nil},
		{"admin open", withTracker + "admin: {listen: ':9080'}\n",
			[]string{"c.yaml:2:17: admin.listen: :9080 is open to other machines without authentication: " +
				"set admin.token_file, admin.token_env or admin.tls.client_ca_file"}},
		{"passthrough", withTracker + "passthrough: [/x, y, /a/../b]\n", []string{
			`c.yaml:2:19: passthrough[1]: "y" is not a path that begins with / and has no dot segments`,
			`c.yaml:2:22: passthrough[2]: "/a/../b" is not a path that begins with / and has no dot segments`,
		}},
		{"passthrough word", withTracker + "passthrough: some\n",
			[]string{`c.yaml:2:14: passthrough: "some" is neither all nor none nor a list of path prefixes`}},
		{"documentation", withTracker + "api: {documentation: 'javascript:x'}\n",
			[]string{"c.yaml:2:22: api.documentation: \"javascript:x\" is not an http or https URL"}},
		{"local level longer than the shared", withTracker + "cache: {local_ttl: 61s}\n",
			[]string{"c.yaml:2:20: cache.local_ttl: 1m1s is longer than ttl (1m0s)"}},
		{"state", withTracker + "state: /var/lib/portico.db\n",
			[]string{"c.yaml:2:8: state: \"/var/lib/portico.db\" is not sqlite:FILE or a postgres://HOST/DATABASE URL"}},
		{"state in another form, with a password", withTracker + "state: host=db password=hunter2\n",
			[]string{"c.yaml:2:8: state: \"REDACTED\" is not sqlite:FILE or a postgres://HOST/DATABASE URL"}},
		{"state without slashes, with a password", withTracker + "state: 'postgres:me:hunter2@db/portico'\n",
			[]string{"c.yaml:2:8: state: \"REDACTED\" is not sqlite:FILE or a postgres://HOST/DATABASE URL"}},
		{"server with a password", withTracker + "cache: {redis: {addrs: ['me:hunter2@cache:6379']}}\n",
			[]string{"c.yaml:2:25: cache.redis.addrs[0]: \"REDACTED\" is not host:port"}},
		{"password of the state", withTracker + "state: postgres://me:pw@db/portico\n",
			[]string{"c.yaml:1:1: warning: cache.redis: is embedded, so each process has a cache of its own, but state is PostgreSQL, which several processes share: " +
				"name a Redis server that they share",
				"c.yaml:2:8: warning: state: holds a password in clear: better set PORTICO_STATE in the environment"}},
		{"password of the state in its query", withTracker + "state: postgres://db/portico?user=me&password=pw\n",
			[]string{"c.yaml:1:1: warning: cache.redis: is embedded, so each process has a cache of its own, but state is PostgreSQL, which several processes share: " +
				"name a Redis server that they share",
				"c.yaml:2:8: warning: state: holds a password in clear: better set PORTICO_STATE in the environment"}},
		{"slash in a password of the state", withTracker + "cache: {scope: off}\nstate: postgres://me:hun/ter2@db/portico\n",
			[]string{"c.yaml:3:8: state: is not a URL; in a password write % as %25, / as %2F, ? as %3F and # as %23"}},
		{"slash in a password of digits", withTracker + "cache: {scope: off}\nstate: postgres://me:12/ter2@db/portico\n",
			[]string{"c.yaml:3:8: state: has an @ behind its host; in a password write % as %25, / as %2F, ? as %3F and # as %23"}},
		{"slash in a password of Redis", withTracker + "cache: {redis: 'redis://:hun/ter2@cache'}\n",
			[]string{"c.yaml:2:16: cache.redis: REDACTED: is not a URL; in a password write % as %25, / as %2F, ? as %3F and # as %23"}},
		{"no room for the payloads kept in memory", withTracker + "limits: {body: 4KiB}\n", nil},
		{"waits beyond counting", withTracker + "limits: {queue_wait: 2562047h47m}\ncache: {stale_if_error: 2562047h47m}\n" +
			"timeouts: {read: 700000h, write: 700000h}\ncanary: {max_body: 4611686018427387905}\n", []string{
			"c.yaml:2:22: limits.queue_wait: 2562047h47m is more than 1h",
			"c.yaml:3:25: cache.stale_if_error: 2562047h47m is more than 87600h",
			"c.yaml:4:18: timeouts.read: 700000h is more than 24h", // four times as long could not be counted
			"c.yaml:4:34: timeouts.write: 700000h is more than 24h",
			"c.yaml:5:20: canary.max_body: 4611686018427387905 is more than 1024GiB",
		}},
		{"variables", "trackers: {my-t: {url: '${TRACKER}'}}\ncache: {redis: '${REDIS_URL}'}\npassthrough: ['/${A}']\ncanary: {marker: '^costs 5$'}\n", []string{
			"c.yaml:1:24: trackers.my-t.url: " + notExpanded, "c.yaml:2:16: cache.redis: " + notExpanded, "c.yaml:3:15: passthrough[0]: " + notExpanded,
		}},
		{"misspelt choices", "trackers: {main: {url: 'http://a/', dialect: bugzilla}}\ncache: {scope: credentials}\nlog: {level: WARN}\n" +
			"canary: {credentials: maped}\n", []string{
			`c.yaml:1:46: trackers.main.dialect: "bugzilla" is not one of auto, bugzilla-5, bmo; did you mean "bugzilla-5"?`,
			`c.yaml:2:16: cache.scope: "credentials" is not one of credential, group, off; did you mean "credential"?`,
			`c.yaml:3:14: log.level: "WARN" is not one of debug, info, warn, error; did you mean "warn"?`,
			`c.yaml:4:23: canary.credentials: "maped" is not one of forward, service, mapped; did you mean "mapped"?`,
		}},
		{"state without a file", withTracker + "state: 'sqlite:'\n", []string{"c.yaml:2:8: state: \"sqlite:\" is not sqlite:FILE or a postgres://HOST/DATABASE URL"}},
		{"state that processes share, and a cache that they share", withTracker + "state: postgres://db/portico\ncache: {redis: 'redis://cache'}\n", nil},
		{"state that processes share, and no cache", withTracker + "state: postgres://db/portico\ncache: {scope: off}\n", nil},
		{"secret that is not there", withTracker + "cache: {secret_env: NOT_SET}\n", []string{"c.yaml:2:21: cache.secret_env: is not set or empty"}},
		{"traces", withTracker + "traces: {endpoint: 'http://127.0.0.1:4318', sample: 0.25}\n", nil},
		{"traces over TLS", withTracker + "traces: {endpoint: 'https://c.example/otlp'}\n", nil},
		{"traces over gRPC", withTracker + "traces: {endpoint: 'grpc://c.example', sample: 1.5}\n", []string{
			"c.yaml:2:20: traces.endpoint: grpc://c.example: must begin with http:// or https://",
			"c.yaml:2:48: traces.sample: 1.5 is more than 1",
		}},
		{"a login of the collector", withTracker + "traces:\n  endpoint: https://me:hunter2@c.example\n",
			[]string{"c.yaml:3:13: traces.endpoint: https://REDACTED@c.example: must not hold a name or password: use headers_file or headers_env"}},
		{"no certificates of a collector", withTracker + "traces: {endpoint: 'http://c.example', ca_file: 'gone.pem'}\n", []string{
			"c.yaml:2:49: traces.ca_file: reading certificates: open gone.pem: no such file or directory",
		}},
		{"malformed headers", withTracker + "traces: {headers_env: HEADERS}\n",
			[]string{"c.yaml:2:23: traces.headers_env: a line is not in the form of Name: value"}},
		{"blobs", withTracker + "blobs: {memory: 1GiB, dir: /does/not/exist}\n", []string{
			"c.yaml:2:28: blobs.dir: /does/not/exist is not a directory that can be read",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Load(nil, []string{"HEADERS=hunter2"}, writeFile(t, "c.yaml", tt.yaml))
			if got := texts(problems); !slices.Equal(got, tt.want) && len(got)+len(tt.want) > 0 {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

// wantProblem loads a file that has one problem with a text, or none if that is empty. No problem shows a password.
func wantProblem(t *testing.T, yaml, want string) {
	t.Helper()
	_, problems := Load(nil, nil, writeFile(t, "c.yaml", yaml))
	got := strings.Join(texts(problems), "\n")
	if (want == "") != (got == "") || !strings.Contains(got, want) || want != "" && !strings.HasPrefix(got, "c.yaml:") || strings.Contains(got, "hunter2") {
		t.Errorf("%s: got %q, want %q", yaml, got, want)
	}
}

func TestTrackerURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://tracker.example":        "",
		"https://tracker.example/bugs/": "",
		"http://[::1]:8081/":            "",
		"http://127.0.0.1:8080/":        "is where Portico itself listens",
		"http://localhost:9080/":        "is where Portico itself listens",
		"http://tracker.example:65535/": "",
		"ftp://tracker.example/":        "must begin with",
		"tracker.example":               "must begin with",
		"http://tracker.example:99999/": "no port beyond 65535",
		"http://tracker.example:0/":     "no port beyond 65535",
		"http:///bugs":                  "needs a host",
		"http://bücher.example/":        "needs a host",
		"http://me:hunter2@host/":       "must not hold a name or password",
		"http://host/?a=b":              "must not have a query",
		"http://host/?":                 "must not have a query",
		"http://host/#top":              "must not have a query",
		"http://host/rest":              "is the REST interface",
		"http://host/bugs/rest.cgi/":    "is the REST interface",
		"http://host/a/../b":            "must not have . or ..",
		"http://me:hunter2@ho st/%zz":   "is not a URL",
	} {
		wantProblem(t, "trackers: {main: {url: '"+url+"'}}\n", want)
	}
	wantProblem(t, "listen: ':80'\ntrackers: {main: {url: http://localhost/}}\n", "is where Portico itself listens")
}

func TestRedis(t *testing.T) {
	for yaml, want := range map[string]string{
		"redis: embedded":                                              "",
		"redis: redis://cache:6379/3":                                  "",
		"redis: unix:///run/redis.sock":                                "",
		"redis: {addrs: ['a:1', 'b:2'], master_name: mymaster}":        "",
		"redis: {url: 'rediss://cache', tls: {server_name: x}}":        "",
		"redis: {url: 'redis://cache', addrs: ['a:1']}":                "exclude each other",
		"redis: {addrs: ['a']}":                                        `"a" is not host:port`,
		"redis: {addrs: ['a:99999']}":                                  `"a:99999" is not host:port`,
		"redis: redis://cache:99999":                                   `a port that is not one from 1 to 65535`,
		"redis: {master_name: m}":                                      "names no server",
		"redis: http://cache":                                          `unsupported scheme "http"; use redis://, rediss:// or unix://`,
		"redis: redis://cache/first":                                   "invalid path or database number",
		"redis: 'redis://cache?pool=1'":                                "only db and cluster",
		"redis: 'redis:///1'":                                          "not a URL of the form redis://host",
		"redis: 'unix://'":                                             "invalid path",
		"redis: redis://:hunter2@cache":                                "warning: cache.redis: holds a password in clear",
		"redis: me:hunter2@cache":                                      "REDACTED: the Redis address",
		"redis: {addrs: ['a:1'], password_file: /nope}":                "reading the secret",
		"redis: {addrs: ['a:1'], password_env: NOT_SET}":               "is not set or empty",
		"redis: {addrs: ['a:1'], password_env: A, password_file: b}":   "exclude each other",
		"redis: {addrs: ['a:1'], tls: {cert_file: x}}":                 "need each other",
		"redis: {addrs: ['a:1'], tls: {enabled: 1}}":                   "is not true or false",
		"redis: {addrs: ['a:1'], tls: {ca_file: /does/not/exist.pem}}": "reading certificates",
	} {
		wantProblem(t, withTracker+"cache: {"+yaml+"}\n", want)
	}
}

func TestFlagsBeatEnvironmentBeatsFileBeatsDefaults(t *testing.T) {
	file := writeFile(t, "c.yaml", `
trackers:
  a: &base {url: 'https://a/', timeout: 7s}
  b: *base
primary: b
listen: 127.0.0.1:1
admin: {listen: 127.0.0.1:2}
cache: {ttl: 3m}
`)
	environ := []string{"PORTICO_LISTEN=127.0.0.1:11", "PORTICO_ADMIN_LISTEN=127.0.0.1:12", "HOME=/"}
	flags := []Setting{{"listen", "127.0.0.1:21", "--listen"}}
	cfg, problems := Load(flags, environ, file)
	if Fatal(problems) {
		t.Fatal(texts(problems))
	}
	got := []any{cfg.Listen, cfg.Admin.Listen, cfg.Cache.TTL, cfg.Cache.LocalTTL, cfg.Trackers["b"].Timeout} // which an anchor gives
	want := []any{"127.0.0.1:21", "127.0.0.1:12", 3 * time.Minute, time.Second, 7 * time.Second}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAFileIsNamedWhateverItLacks(t *testing.T) {
	empty, folder := writeFile(t, "c.yaml", ""), t.TempDir()
	for file, want := range map[string]string{
		empty:                 empty + ":1:1: trackers: is empty",
		folder:                folder + ": cannot be read: ",
		folder + "/none.yaml": folder + "/none.yaml: cannot be read: ",
	} {
		if _, problems := Load(nil, nil, file); len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("got %v, want %s", problems, want)
		}
	}
}

// TestSyntaxIsWrongInItsLine, or in the one before, where the parser of the library finds it.
func TestSyntaxIsWrongInItsLine(t *testing.T) {
	for content, line := range map[string]int{
		withTracker + "passthrough: [/a\nstate: a\n":      1,
		withTracker + "limits:\n  ids: 5\n    depth: 7\n": 4,
		withTracker + "limits:\n\tids: 5\n":               3,
		"listen: a: b\n" + withTracker:                    1,
	} {
		_, problems := Load(nil, nil, writeFile(t, "c.yaml", content))
		if got := texts(problems); len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf("c.yaml:%d:1: not valid YAML: ", line)) {
			t.Errorf("%q gives %q, want line %d", content, got, line)
		}
	}
}

// TestStateProblemsNameTheKey: the store is looked at only where there is a candidate, or where ids are translated.
func TestStateProblemsNameTheKey(t *testing.T) {
	for content, want := range map[string][]string{
		withTwo + "state: sqlite:/does/not/exist/x.db\n":                                              {"c.yaml:4:8: state: the folder /does/not/exist is not there"},
		withTracker + "state: sqlite:/does/not/exist/x.db\n":                                          {},
		withTracker + "state: sqlite:/does/not/exist/x.db\nswitchover: {ids: {bug: {mode: table}}}\n": {"c.yaml:2:8: state: the folder /does/not/exist is not there"},
		withTwo: {},
	} {
		cfg, _ := Load(nil, nil, writeFile(t, "c.yaml", content))
		if got := texts(cfg.StateProblems()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
}

// TestListenersAndFilesAreChecked: TLS files are read at the start, and the listener of operators is closed to other machines without a
// token or certificates.
func TestListenersAndFilesAreChecked(t *testing.T) {
	cert, key := process.KeyPair(t)
	_, otherKey := process.KeyPair(t)
	ended, endedKey := process.EndedKeyPair(t)
	pair, junk := "cert_file: "+cert+", key_file: "+key, writeFile(t, "junk.pem", "no PEM here")
	tracker := func(more string) string { return "trackers: {main: {url: 'https://a/', " + more + "}}\n" }
	for _, c := range []struct{ name, yaml, want string }{
		{"open with TLS only", withTracker + "admin: {listen: ':9080', tls: {" + pair + "}}\n",
			"c.yaml:2:17: admin.listen: :9080 is open to other machines without authentication"},
		{"token in clear", withTracker + "admin: {listen: ':9080', token_env: TOKEN}\n",
			"c.yaml:2:17: warning: admin.listen: :9080 is open to other machines, and the token goes there in clear: set admin.tls"},
		{"token over TLS", withTracker + "admin: {listen: ':9080', token_env: TOKEN, tls: {" + pair + "}}\n", ""},
		{"client certificates", withTracker + "admin: {listen: ':9080', tls: {" + pair + ", client_ca_file: " + cert + "}}\n", ""},
		{"client certificates without TLS", withTracker + "admin: {tls: {client_ca_file: " + cert + "}}\n",
			"c.yaml:2:31: admin.tls.client_ca_file: needs cert_file and key_file: without TLS no client shows a certificate"},
		{"no token", withTracker + "admin: {listen: ':9080', token_env: NOTHING}\n", "c.yaml:2:37: admin.token_env: is not set or empty"},
		{"byte order mark", withTracker + "admin: {token_file: " + writeFile(t, "marked", "\ufeff0123456789abcdef\n") + "}\n",
			"c.yaml:2:21: admin.token_file: is not one line of text without a byte order mark or spaces around it"},
		{"space behind a token", withTracker + "admin: {token_file: " + writeFile(t, "spaced", "0123456789abcdef \r\n") + "}\n", "is not one line of text"},
		{"note below a token", withTracker + "admin: {token_file: " + writeFile(t, "noted", "0123456789abcdef\n# made in May\n") + "}\n", "is not one line of text"},
		{"text of UTF-16", withTracker + "admin: {token_file: " + writeFile(t, "wide", "0\x001\x002\x003\x004\x005\x006\x007\x00") + "}\n", "is not one line of text"},
		{"token of a Windows editor", withTracker + "admin: {token_file: " + writeFile(t, "crlf", "0123456789abcdef\r\n") + "}\n", ""},
		{"bytes of the cache", withTracker + "cache: {secret_file: " + writeFile(t, "bytes", " \x00\n23456789abcdef\x01") + "}\n", ""},
		{"certificate that has ended", withTracker + "tls: {cert_file: " + ended + ", key_file: " + endedKey + "}\n",
			"c.yaml:2:18: warning: tls.cert_file: its certificate ended on 2020-01-02"},
		{"certificate alone", withTracker + "tls: {cert_file: " + cert + "}\n", "c.yaml:2:18: tls.cert_file: cert_file and key_file need each other"},
		{"key alone", withTracker + "admin: {tls: {key_file: " + key + "}}\n", "c.yaml:2:14: admin.tls.cert_file: cert_file and key_file need each other"},
		{"key of another", withTracker + "tls: {cert_file: " + cert + ", key_file: " + otherKey + "}\n",
			"c.yaml:2:18: tls.cert_file: reading the certificate: tls: private key does not match"},
		{"no authority", withTracker + "admin: {tls: {" + pair + ", client_ca_file: " + key + "}}\n", "admin.tls.client_ca_file: " + key + " holds no PEM certificate"},
		{"no authority of a tracker", tracker("ca_file: " + junk), "trackers.main.ca_file: " + junk + " holds no PEM certificate"},
		{"certificate alone for a tracker", tracker("cert_file: " + cert), "trackers.main.cert_file: cert_file and key_file need each other"},
		{"no certificate for a tracker", tracker("cert_file: " + junk + ", key_file: " + key), "trackers.main.cert_file: reading the certificate: tls: failed to"},
	} {
		_, problems := Load(nil, []string{"TOKEN=sixteen bytes or more"}, writeFile(t, "c.yaml", c.yaml))
		got := strings.Join(texts(problems), "\n")
		if !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTLSOfRedis: what is configured of it turns it on, and the name in the certificate is checked against the one configured.
func TestTLSOfRedis(t *testing.T) {
	for r, want := range map[*Redis]bool{{URL: "redis://a"}: false, {URL: "rediss://a"}: true, {URL: "redis://a", TLS: TLS{ServerName: "a"}}: true} {
		settings, err := r.Client()
		if err != nil || (settings != nil) != want || want && settings.ServerName != r.TLS.ServerName {
			t.Errorf("%+v: got %v, %v", r, settings, err)
		}
	}
}

// TestEveryKeySaysWhatAReloadDoes: each top-level key has the tag change, which those below it inherit.
func TestEveryKeySaysWhatAReloadDoes(t *testing.T) {
	var look func(section reflect.Type, known bool)
	look = func(section reflect.Type, known bool) {
		for _, m := range members(reflect.Zero(section)) {
			change, kind := m.tag.Get("change"), m.value.Type()
			if change == "" && !known || change != "" && change != "reload" && change != "restart" {
				t.Errorf("%s of %s: change is %q", m.path, section, change)
			}
			if kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			if isSection(kind) {
				look(kind, true)
			}
		}
	}
	look(reflect.TypeFor[Config](), false)
}

func TestKeysThatAReloadDoesNotTake(t *testing.T) {
	certFile, keyFile := process.KeyPair(t)
	old := withTwo + "cache: {redis: {addrs: ['a:1']}}\n"
	for _, tt := range []struct {
		yaml string
		want []string
	}{
		{old, nil},
		{old + "switchover: {rules: [{name: x}]}\ncanary: {sample: 0.5}\nlimits: {ids: 5}\ntimeouts: {drain: 1s}\nlog: {level: warn}\n" +
			"responses: interface\npassthrough: none\ntrusted_proxies: [10.0.0.1]\nblobs: {memory: 1MiB}\n", nil},
		{withTwo + "listen: 127.0.0.1:1\nadmin: {listen: 127.0.0.1:2}\nstate: sqlite:other.db\n" +
			"cache: {ttl: 5m, redis: {addrs: ['b:1'], username: me, password_env: KEY}}\n" +
			"limits: {connections: 5, header: 8KiB}\ntimeouts: {header: 1s, idle: 1s}\nlog: {format: text}\n",
			[]string{"listen", "admin.listen", "cache.redis", "state", "limits.connections", "limits.header", "timeouts.header", "timeouts.idle", "log.format"}},
		{"trackers: {a: {url: 'http://c.example/', timeout: 1s}, b: {url: 'http://b.example/'}, c: {url: 'http://c.example/'}}\n" +
			"primary: a\ncandidate: c\ncache: {redis: {addrs: ['a:1']}}\n", []string{"trackers.a.url", "candidate"}},
		{"trackers: {a: {url: 'http://a.example/'}, c: {url: 'http://c.example/'}}\n" + // without b, which is in use
			"primary: a\ncandidate: c\ncache: {redis: {addrs: ['a:1']}}\n", []string{"candidate"}},
		{"trackers: {b: {url: 'http://b.example/'}, c: {url: 'http://c.example/'}}\n" + // without a, which is in use
			"primary: c\ncandidate: b\ncache: {redis: {addrs: ['a:1']}}\n", []string{"primary"}},
		{old + "tls: {cert_file: " + certFile + ", key_file: " + keyFile + "}\nadmin: {tls: {cert_file: " + certFile + ", key_file: " + keyFile + "}}\n",
			[]string{"tls.cert_file", "admin.tls.cert_file"}},
	} {
		var loaded [2]Config
		for i, content := range []string{old, tt.yaml} {
			loaded[i], _ = Load(nil, []string{"KEY=a password"}, writeFile(t, "c.yaml", content))
		}
		if got := KeepUntilRestart(loaded[0], &loaded[1]); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.yaml, got, tt.want)
		}
		for name, used := range map[string]string{"a": loaded[1].Primary, "b": loaded[1].Candidate} {
			if got := loaded[1].Trackers[name].URL; used != name || got != "http://"+name+".example/" {
				t.Errorf("%s: the tracker %s is %s at %q", tt.yaml, name, used, got)
			}
		}
		if got := KeepUntilRestart(loaded[0], &loaded[1]); len(got) > 0 {
			t.Errorf("what was kept differs: %q", got)
		}
	}
}

func TestRedactURL(t *testing.T) {
	for text, want := range map[string]string{
		"embedded":                        "embedded",
		"sqlite:portico.db":               "sqlite:portico.db",
		"https://host/~me@home/?a=b&c=d":  "https://host/~me@home/?a=REDACTED&c=REDACTED",
		"https://me:hunter2@host/":        "https://REDACTED@host/",
		"https://hunter2@host/":           "https://REDACTED@host/",
		"127.0.0.1:9080":                  "REDACTED",
		"//me:hunter2@host/":              "REDACTED",
		"hunter2@host":                    "REDACTED",
		"me:hunter2@host":                 "REDACTED",
		"https://me:hunter2@ho st/":       "REDACTED",
		"redis://host/?password=hunter2;": "redis://host/",
		"postgres://me:12/hunter2@host/d": "REDACTED",
		"postgres://me:12?hunter2@host/d": "REDACTED",
		"postgres://me:12#hunter2@host/d": "REDACTED",
		"postgres://me@12/hunter2@host/d": "REDACTED",
	} {
		if got := RedactURL(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestTextsOfValues: sizes and durations are read in several forms, and written in the shortest.
func TestTextsOfValues(t *testing.T) {
	const size = `is:"size"`
	for _, tt := range []struct {
		into  any
		tag   reflect.StructTag
		texts map[string]string // as they are written, empty if they are refused
	}{
		{new(int64), size, map[string]string{
			"0": "0", "512": "512", "512B": "512", "1KiB": "1KiB", "64 MiB": "64MiB", "2048KiB": "2MiB",
			"1GiB": "1GiB", "10MB": "10000000", "1kB": "1000", "1KB": "1000", "1GB": "1000000000",
			"": "", "MiB": "", "1.5MiB": "", "1mib": "", "1 2": "", "0x10": "", "9000000000GiB": "", "-9000000000GiB": "",
		}},
		{new(time.Duration), "", map[string]string{
			"0": "0s", "1s": "1s", "90s": "1m30s", "60s": "1m", "60m": "1h", "10m": "10m", "100m": "1h40m", "3601s": "1h0m1s", "10s": "10s", "1": "",
		}},
		{new(Prefixes), "", map[string]string{"all": "[/]", "none": "[]", "/a, /b": "[/a /b]", "": "", "x": ""}},
	} {
		for text, want := range tt.texts {
			v := reflect.ValueOf(tt.into).Elem()
			err := parse(v, text, tt.tag)
			if (err != nil) != (want == "") || err == nil && textOf(v, tt.tag) != want {
				t.Errorf("%q: got %s, %v, want %q", text, textOf(v, tt.tag), err, want)
			}
		}
	}
}

func TestQueueWait(t *testing.T) {
	known := members(reflect.ValueOf(Limits{}))
	tag := known[slices.IndexFunc(known, func(k key) bool { return k.path == "queue_wait" })].tag
	for text, want := range map[string]*time.Duration{"timeout": nil, "0s": new(time.Duration), "2s": new(2 * time.Second)} {
		var limits Limits
		wait := reflect.ValueOf(&limits.QueueWait).Elem()
		if err := parse(wait, text, tag); err != nil || !reflect.DeepEqual(limits.QueueWait, want) {
			t.Errorf("%s is %v, %v", text, limits.QueueWait, err)
		}
		if again := textOf(wait, tag); again != text {
			t.Errorf("%s is written as %s", text, again)
		}
	}
	for _, text := range []string{"", "2", "-1s", "2h"} {
		var limits Limits
		if err := parse(reflect.ValueOf(&limits.QueueWait).Elem(), text, tag); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
