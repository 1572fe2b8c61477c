package config

import (
	"reflect"
	"slices"
	"testing"

	"portico/test/process"
)

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
		{old + "tls: {cert_file: " + certFile + ", key_file: " + keyFile + "}\nadmin: {tls: {cert_file: " + certFile + ", key_file: " + keyFile + "}}\n",
			[]string{"tls.cert_file", "admin.tls.cert_file"}},
	} {
		var loaded [2]Config
		for i, content := range []string{old, tt.yaml} {
			cfg, problems := Load(nil, []string{"KEY=a password"}, writeFile(t, "c.yaml", content))
			if Fatal(problems) {
				t.Fatal(texts(problems))
			}
			loaded[i] = cfg
		}
		if got := KeepUntilRestart(loaded[0], &loaded[1]); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.yaml, got, tt.want)
		}
		if got := loaded[1].Trackers["b"].URL; loaded[1].Candidate != "b" || got != "http://b.example/" {
			t.Errorf("%s: the candidate is %s at %q", tt.yaml, loaded[1].Candidate, got)
		}
		if got := KeepUntilRestart(loaded[0], &loaded[1]); len(got) > 0 {
			t.Errorf("what was kept differs: %q", got)
		}
	}
}
