package config

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// withTwo is the least that a configuration of two trackers must say; what is added
// begins in line 4.
const withTwo = "trackers: {a: {url: 'http://a.example/'}, b: {url: 'http://b.example/'}}\nprimary: a\ncandidate: b\n"

func TestTwoTrackersAreChecked(t *testing.T) {
	environ := []string{"KEY=the key of a robot", "SHADOW=its other key", "THIRD=a third one"}
	const robot = "callers: {robot: {key_env: KEY, shadow_key_env: SHADOW}}\n"
	for _, tt := range []struct {
		name, yaml string
		want       []string
	}{
		{"least", withTwo, nil},
		{"candidate unknown", strings.Replace(withTwo, "candidate: b", "candidate: bb", 1),
			[]string{`c.yaml:3:12: candidate: "bb" is not one of the trackers (a, b)`}},
		{"candidate is the primary", strings.Replace(withTwo, "candidate: b", "candidate: a", 1),
			[]string{`c.yaml:3:12: candidate: "a" is the primary tracker already`}},
		{"rules without a candidate", withTracker + "switchover: {rules: [{name: x}]}\n",
			[]string{"c.yaml:2:21: switchover.rules: need a second tracker: say which one is the candidate"}},
		{"a gap", withTwo + "switchover:\n  rules:\n    - name: some\n      product: WebShop\n",
			[]string{"c.yaml:6:7: switchover.rules[0]: the last rule must have no conditions"}},
		{"an overlap that hides a rule", withTwo + "switchover:\n  rules:\n    - {name: all-of-it, product: WebShop}\n" +
			"    - {name: never, product: WebShop, component: Search}\n    - {name: rest}\n",
			[]string{`c.yaml:7:7: switchover.rules[1]: "never" is never reached, because rule 1 ("all-of-it")`}},
		{"reads behind writes", withTwo + "switchover:\n  rules:\n    - name: rest\n      reads: old\n      writes: new\n",
			[]string{"c.yaml:7:14: switchover.rules[0].reads: reads (old) are behind writes (new)"}},
		{"no such phase", withTwo + "switchover: {rules: [{name: rest, reads: newer}]}\n",
			[]string{`c.yaml:4:42: switchover.rules[0].reads: "newer" is not one of old, old-compare, new-compare, new; did you mean "new"?`}},
		{"no such operation", withTwo + "switchover: {rules: [{name: x, operation: flagtype.get}, {name: rest}]}\n",
			[]string{`c.yaml:4:43: switchover.rules[0].operation: "flagtype.get" is not an operation`}},
		{"no such caller", withTwo + robot + "switchover: {rules: [{name: x, caller: [robot, rob]}, {name: rest}]}\n",
			[]string{`c.yaml:5:40: switchover.rules[0].caller: no caller is named "rob"`}},
		{"no name, and one twice", withTwo + "switchover: {rules: [{product: A}, {name: x, product: B}, {name: x}]}\n",
			[]string{"c.yaml:4:22: switchover.rules[0].name: a rule needs a name", `c.yaml:4:66: switchover.rules[2].name: there is another rule "x"`}},
		{"bad ranges", withTwo + "switchover: {rules: [{name: x, bugs: [9-1, 0-3]}, {name: y, attachments: all}, {name: rest}]}\n", []string{
			`c.yaml:4:39: switchover.rules[0].bugs[0]: "9-1" is not a range of ids such as 1-100, 7 or 500-`,
			`c.yaml:4:44: switchover.rules[0].bugs[1]: "0-3" is not a range of ids such as 1-100, 7 or 500-`,
			`c.yaml:4:74: switchover.rules[1].attachments: "all" is not a range of ids such as 1-100, 7 or 500-`,
		}},
		{"bad percentage", withTwo + "switchover: {rules: [{name: x, percent: 110}, {name: rest}]}\n",
			[]string{"c.yaml:4:41: switchover.rules[0].percent: 110 is more than 100"}},
		{"passthrough by halves", withTwo + "switchover: {passthrough: {reads: old}}\n",
			[]string{"c.yaml:4:27: switchover.passthrough: needs both reads and writes, or neither"}},
		{"passthrough behind", withTwo + "switchover: {passthrough: {reads: old, writes: new}}\n",
			[]string{"c.yaml:4:35: switchover.passthrough.reads: reads (old) are behind writes (new)"}},
		{"unknown key of a rule", withTwo + "switchover: {rules: [{name: rest, products: A}]}\n",
			[]string{`c.yaml:4:35: unknown key "products" in switchover.rules[0]; did you mean "product"?`}},
		{"callers", withTwo + "callers:\n  a: {}\n  b: {key_env: KEY}\n  c: {key_env: KEY}\n  d: {key_env: NOT_SET}\n", []string{
			"c.yaml:5:6: callers.a: has no key: set key_file or key_env",
			"c.yaml:7:6: callers.c: has a key at tracker a that is a key of b",
			"c.yaml:8:16: callers.d.key_env: is not set or empty",
		}},
		{"a key with a note below it", withTwo + "callers: {a: {key_file: '" + writeFile(t, "key", "the key of a robot\nof the build machine\n") + "'}}\n",
			[]string{"c.yaml:4:25: callers.a.key_file: is not one line of text without a byte order mark or spaces around it"}},
		{"the key of one is the other's shadow key", withTwo + "callers:\n  a: {key_env: KEY, shadow_key_env: SHADOW}\n  b: {key_env: SHADOW}\n", []string{
			"c.yaml:6:6: callers.b: has a key at tracker a that is a key of a",
		}},
		{"one key for both trackers", withTwo + "callers:\n  a: {key_env: KEY, shadow_key_env: KEY}\n", nil},
		{"one shadow key for two", withTwo + "callers:\n  a: {key_env: KEY, shadow_key_env: THIRD}\n  b: {key_env: SHADOW, shadow_key_env: THIRD}\n", []string{
			"c.yaml:6:6: callers.b: has a key at tracker b that is a key of a",
		}},
		{"reads behind another rule's writes", withTwo + "switchover:\n  rules:\n    - {name: w, operation: [attachment.update], reads: new, writes: new}\n    - {name: rest}\n", []string{
			`c.yaml:6:56: switchover.rules[0].reads: reads are behind writes: what this rule writes at the new tracker is read at the old one, by rule 2 ("rest")`,
			`c.yaml:6:69: warning: switchover.rules[0].writes: attachment.update goes to the new tracker, and other writes of the same objects to the old one`,
		}},
		{"mapped without a key", withTwo + "canary: {credentials: mapped}\n",
			[]string{"c.yaml:4:23: canary.credentials: mapped needs a caller with a key at this tracker: set callers.NAME.keys.b"}},
		{"mapped", withTwo + robot + "canary: {credentials: mapped}\n", nil},
		{"service without a key", withTwo + "canary: {credentials: service}\n",
			[]string{"c.yaml:4:23: canary.credentials: service needs service_key_file or service_key_env"}},
		{"mapped at a tracker without a key", "trackers:\n  a: {url: \"http://a.example\"}\n  b: {url: \"http://b.example\", credentials: mapped}\nprimary: a\ncandidate: b\n",
			[]string{"c.yaml:3:45: trackers.b.credentials: mapped needs a caller with a key at this tracker: set callers.NAME.keys.b"}},
		{"service at a tracker without a key", "trackers:\n  a: {url: \"http://a.example\", credentials: service}\n",
			[]string{"c.yaml:2:45: trackers.a.credentials: service needs service_key_file or service_key_env"}},
		{"keys by tracker", "trackers:\n  a: {url: \"http://a.example\", credentials: mapped}\n  b: {url: \"http://b.example\", credentials: mapped}\nprimary: a\ncandidate: b\n" +
			"callers: {robot: {keys: {a: {env: KEY}, b: {env: SHADOW}}}}\ncanary: {credentials: mapped}\n", nil},
		{"wrong keys by tracker", withTwo + "callers:\n  a:\n    key_env: KEY\n    keys: {nowhere: {env: KEY}, a: {env: NOT_SET}}\n", []string{
			"c.yaml:7:21: callers.a.keys.nowhere: is not one of the trackers",
			"c.yaml:7:42: callers.a.keys.a.env: is not set or empty",
		}},
		{"isolated without a marker", withTwo + "canary: {isolated: true}\n",
			[]string{"c.yaml:4:20: canary.isolated: needs a marker that proves it"}},
		{"isolated and following", withTwo + "canary: {follows: true, isolated: true, marker: x}\n",
			[]string{"c.yaml:4:35: canary.isolated: and follows exclude each other"}},
		{"ids of nothing", withTwo + "switchover: {ids: {nothing: {}}}\n", []string{"c.yaml:4:29: switchover.ids.nothing: is not one of"}},
		{"no such mode", withTwo + "switchover: {ids: {bug: {mode: x}}}\n",
			[]string{`c.yaml:4:32: switchover.ids.bug.mode: "x" is not one of identity, offset, table`}},
		{"one id for two objects", withTwo + "switchover: {ids: {flag: {mode: identity}}, rules: [{name: a, reads: new, writes: new}]}\n",
			[]string{"c.yaml:4:26: switchover.ids.flag: has the mode identity"}},
		{"one id for a copy and another object", withTwo + "switchover: {ids: {flag: {mode: identity}}, journal: {key_env: KEY}, rules: [{name: a, reads: old, writes: old, replicate: true}]}\n",
			[]string{"c.yaml:4:26: switchover.ids.flag: has the mode identity"}},
		{"copies without a key of the journal", withTwo + "switchover: {rules: [{name: a, reads: old, writes: old, replicate: true}]}\n",
			[]string{"c.yaml:4:13: switchover.journal: rules replicate, so it needs key_file or key_env"}},
		{"names without ids", withTwo + "switchover: {names: {product: {A B: C}}}\n", []string{"c.yaml:4:31: switchover.names.product: does nothing without ids"}},
		{"names that are alike", withTwo + "switchover: {ids: {bug: {}}, names: {product: {A B: C, a b: D}}}\n", []string{"c.yaml:4:47: switchover.names.product: has two names"}},
		{"an offset that is too large", withTwo + "switchover: {ids: {bug: {offset: 2147483647}}}\n", []string{"c.yaml:4:34: switchover.ids.bug.offset: "}},
		{"names that are empty", withTwo + "switchover: {ids: {bug: {}}, names: {product: {'': C}, group: {a: ' '}}}\n", []string{
			"c.yaml:4:48: switchover.names.product: an entry has no name", "c.yaml:4:63: switchover.names.group: has two names that a tracker cannot tell apart, or an empty one",
		}},
		{"a key of the journal that is too short", withTwo + "switchover: {journal: {key_file: '" + writeFile(t, "key", "short") + "'}}\n",
			[]string{"c.yaml:4:34: switchover.journal.key_file: is too short"}},
		{"an older key of the journal that is too short", withTwo + "switchover:\n  journal:\n    key_env: KEY\n    older_key_files:\n      - " + writeFile(t, "good", strings.Repeat("k", 16)) +
			"\n      - " + writeFile(t, "old", "short") + "\n", []string{"c.yaml:9:9: switchover.journal.older_key_files[1]: is too short"}},
		{"no older key of the journal", withTwo + "switchover: {journal: {key_env: KEY, older_key_files: /nowhere}}\n",
			[]string{"c.yaml:4:55: switchover.journal.older_key_files[0]: reading the secret: open /nowhere: no such file"}},
		{"no spool", withTwo + "switchover: {journal: {key_env: KEY, spool: ''}}\n", []string{`c.yaml:4:45: switchover.journal.spool: "" is not a directory`}},
		{"a file for a spool", withTwo + "switchover: {journal: {key_env: KEY, spool: /dev/null}}\n",
			[]string{`c.yaml:4:45: switchover.journal.spool: "/dev/null" is not a directory`}},
		{"shares", withTwo + "canary: {sample: 1.5, operations: {flag_type.get: -1, flag_type: 1}, noise: some, target: .nan, latency: {ratio: .inf}}\n", []string{
			"c.yaml:4:18: canary.sample: 1.5 is more than 1",
			"c.yaml:4:51: canary.operations.flag_type.get: -1 is less than 0",
			`c.yaml:4:55: canary.operations: "flag_type" is not an operation`,
			`c.yaml:4:77: canary.noise: "some" is not a number`,
			`c.yaml:4:91: canary.target: .nan is less than 0.0001`,
			`c.yaml:4:114: canary.latency.ratio: .inf is more than 1000`,
		}},
		{"a share of no operation", withTwo + "canary: {operations: {'': 1}}\n", []string{"c.yaml:4:23: canary.operations: an entry has no name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Load(nil, environ, writeFile(t, "c.yaml", tt.yaml))
			got := texts(problems)
			same := slices.EqualFunc(got, tt.want, func(have, want string) bool { return strings.HasPrefix(have, want) })
			if !same {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
			if strings.Contains(strings.Join(got, ""), "robot's") || strings.Contains(strings.Join(got, ""), "the key of") {
				t.Error("a key is shown")
			}
		})
	}
}

func TestEquivalencesAreChecked(t *testing.T) {
	const good = "name: n, type: set, path: '$.bugs', owner: me, reason: r, expires: 2999-01-01"
	for entry, want := range map[string]string{
		good: "",
		strings.Replace(good, "type: set", "type: sets", 1):                           `canary.equivalences[0].type: "sets" is not one of time-within, regex, int-as-bool, idmap, set, url-host, extra, pair; did you mean "set"?`,
		strings.Replace(good, "owner: me, ", "", 1):                                   "canary.equivalences[0].owner: ",
		strings.Replace(good, "2999", "2020", 1):                                      "warning: canary.equivalences[0].expires: ",
		strings.Replace(good, "2999-01-01", "soon", 1):                                `canary.equivalences[0].expires: "soon" is not a date`,
		strings.Replace(good, "type: set", "type: regex, pattern: '('", 1):            "canary.equivalences[0].pattern: ",
		strings.Replace(good, "type: set", "type: idmap, table: {a: 1}", 1):           `canary.equivalences[0].table: "a" is not a whole number`,
		strings.Replace(good, "type: set", "type: idmap, table: {17: 42}", 1):         "",
		strings.Replace(good, "type: set", "type: time-within, within: 2s", 1):        "",
		strings.Replace(good, "type: set", "type: time-within", 1):                    "canary.equivalences[0].within: ",
		strings.Replace(good, "type: set", "type: set, operation: flag_type.list", 1): "canary.equivalences[0].operation: ",
		good + "}, {" + good: "canary.equivalences[1].name: ",
	} {
		wantProblem(t, withTwo+"canary: {equivalences: [{"+entry+"}]}\n", want)
	}
}

// TestRulesCanBePrintedAndReadAgain holds that nothing of two trackers is lost by
// check --print.
func TestRulesCanBePrintedAndReadAgain(t *testing.T) {
	environ := []string{"KEY=the key of a robot"}
	cfg := mustLoad(t, environ, withTwo+`
callers: {robot: {key_env: KEY}}
switchover:
  passthrough: {reads: new, writes: old}
  rules:
    - {name: ci, caller: robot, user_agent: ['ci/*', x], operation: flag_type.get, reads: new}
    - {name: some, product: 'One, Two', component: [a, b], bugs: [1-100, '7', 500-], attachments: 3-4, percent: 12.5}
    - {name: all, percent: 100, reads: new}
    - {name: rest, percent: 100.0}
canary:
  operations: {flag_type.get: 0.1}
  equivalences: [{name: n, type: idmap, path: '**', owner: me, reason: r, expires: 2999-01-01, table: {17: 42}, offset: 3}]
`)
	if got := cfg.Switchover.Rules[1]; !slices.Equal(got.Products, []string{"One, Two"}) || len(got.Bugs) != 3 || got.Percent == nil || *got.Percent != 12.5 || got.Writes != "old-compare" {
		t.Errorf("the second rule is %+v", got)
	}
	var printed bytes.Buffer
	must(t, Print(&printed, cfg))
	again := mustLoad(t, environ, printed.String())
	if text := printed.String(); strings.Index(text, "\n  a:\n") > strings.Index(text, "\n  b:\n") {
		t.Errorf("the trackers are not in order:\n%s", text)
	}
	var second bytes.Buffer
	must(t, Print(&second, again))
	if !reflect.DeepEqual(withoutComments(t, printed.Bytes()), withoutComments(t, second.Bytes())) || !reflect.DeepEqual(cfg.Canary, again.Canary) || !reflect.DeepEqual(cfg.Callers, again.Callers) {
		t.Errorf("read again it is another one, printed as\n%s", &printed)
	}
	// A share that has grown to all callers is one, except in the last rule, which is for all.
	rules := cfg.Switchover.Table().Rules
	if share := rules[2].Percent; share == nil || *share != 100 || rules[3].Percent != nil || rules[3].Conditional() {
		t.Errorf("the last rules are %+v", rules[2:])
	}
}
