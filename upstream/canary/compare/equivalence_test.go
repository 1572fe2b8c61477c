package compare

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// goodRule is a rule without a mistake.
func goodRule(name string) Equivalence {
	return Equivalence{
		Name: name, Type: TimeWithin, Path: "$.attachments[*].last_change_time", Within: 5 * time.Second,
		Owner: "mara", Reason: "clocks differ", Expires: testNow.Add(24 * time.Hour),
	}
}

// rulesOf compiles rules that must be good.
func rulesOf(t *testing.T, list ...Equivalence) Rules {
	t.Helper()
	for i := range list {
		list[i].Name, list[i].Owner, list[i].Reason, list[i].Expires = fmt.Sprint("r", i), "mara", "why not", testNow.Add(time.Hour)
	}
	rules, problems := NewRules(list, testNow)
	if len(problems) > 0 {
		t.Fatalf("problems: %+v", problems)
	}
	return rules
}

// Each rule excuses what is just inside, and neither what is just outside nor a
// difference of another kind.
func TestRulesExcuseExactlyTheirDifference(t *testing.T) {
	attachment := `{"attachments":{"6":{"id":6,"time":%s}},"bugs":{}}`
	within := Equivalence{Type: TimeWithin, Path: "$.attachments[*].time", Within: 5 * time.Second}
	regex := Equivalence{Type: Regex, Path: "$.attachments[*].*", Pattern: `v(\d+)\.[0-9]+`}
	words := Equivalence{Type: Regex, Path: "$.attachments[*].*", Pattern: `one|two`}
	truth := Equivalence{Type: IntAsBool, Path: "$.attachments[*].time"}
	host := Equivalence{Type: URLHost, Path: "**.time"}
	offset := Equivalence{Type: IDMap, Path: "$.attachments[*].time", Offset: 1000}
	table := Equivalence{Type: IDMap, Path: "$.attachments[*].time", Table: map[int64]int64{5: 77}}
	set := Equivalence{Type: Set, Path: "$.attachments[*].time"}
	extra := Equivalence{Type: Extra, Path: "$.attachments[*].time.x"}
	const path = " $.attachments[*].time"
	for _, test := range []struct {
		rule       Equivalence
		want, have string
		found      string
	}{
		{within, `"2020-01-02T03:04:05Z"`, `"2020-01-02T03:04:10Z"`, "time" + path + " by r0"},
		{within, `"2020-01-02T03:04:10Z"`, `"2020-01-02T03:04:05Z"`, "time" + path + " by r0"},
		{within, `"2020-01-02T03:04:05Z"`, `"2020-01-02T03:04:11Z"`, "time" + path},
		{within, `"2020-01-02T03:04:05Z"`, `"2020-01-02 03:04:05"`, "value" + path},
		{within, `"2020-01-02T03:04:05Z"`, `null`, "null" + path},
		{regex, `"v12.1"`, `"v12.2"`, "value" + path + " by r0"},
		{regex, `"v12.1"`, `"v13.1"`, "value" + path},
		{regex, `"v12.1"`, `"v12.x"`, "value" + path},
		{regex, `"v12.1"`, `" v12.2"`, "value" + path},
		{regex, `"v12.1"`, `"v12.2x"`, "value" + path},
		{regex, `"v12.1"`, `12`, "type" + path},
		{words, `"one"`, `"two"`, "value" + path + " by r0"},
		{words, `"one"`, `"one more"`, "value" + path},
		{truth, `0`, `false`, "type" + path + " by r0"},
		{truth, `true`, `1`, "type" + path + " by r0"},
		{truth, `0`, `true`, "type" + path},
		{truth, `2`, `true`, "type" + path},
		{truth, `"1"`, `true`, "type" + path},
		{truth, `1.0`, `true`, "type" + path},
		{truth, `0`, `1`, "value" + path},
		{truth, `0`, `null`, "null" + path},
		{host, `"http://a.example/x?y=1"`, `"https://b.example:8080/x?y=1"`, "value" + path + " by r0"},
		{host, `"http://a.example/x?y=1"`, `"https://b.example/x?y=2"`, "value" + path},
		{host, `"http://a.example/x"`, `"http://u@b.example/x"`, "value" + path},
		{host, `"http://a.example/x"`, `"/x"`, "value" + path},
		{offset, `5`, `1005`, "value" + path + " by r0"},
		{offset, `"5"`, `"1005"`, "value" + path + " by r0"},
		{offset, `5`, `1006`, "value" + path},
		{offset, `1005`, `5`, "value" + path},
		{offset, `5`, `"1005"`, "type" + path},
		{offset, `9223372036854775807`, `-9223372036854774809`, "value" + path}, // no id is beyond the last
		{table, `5`, `77`, "value" + path + " by r0"},
		{table, `5`, `78`, "value" + path},
		{table, `6`, `78`, "value" + path},
		{set, `[1,2,3]`, `[3,1,2]`, "order" + path + " by r0"},
		{set, `[1,2,3]`, `[3,1,4]`, "set" + path + "\norder" + path + " by r0"},
		{set, `[1,2,3]`, `[1,2,4]`, "set" + path},
		{set, `[1,2,3]`, `[3,1]`, "set" + path + "\norder" + path + " by r0"},
		{set, `[1,2]`, `[1,2,2]`, "set" + path},
		{set, `1`, `2`, "value" + path},
		{extra, `{}`, `{"x":1}`, "extra" + path + ".x by r0"},
		{extra, `{"x":1}`, `{}`, "missing" + path + ".x"},
		{extra, `{"x":1}`, `{"x":2}`, "value" + path + ".x"},
	} {
		one, two := ok(fmt.Sprintf(attachment, test.want)), ok(fmt.Sprintf(attachment, test.have))
		if got := said(Compare(mapping.OpAttachment, one, two, rulesOf(t, test.rule))); got != test.found {
			t.Errorf("%s of %s and %s: found %q, want %q", test.rule.Type, test.want, test.have, got, test.found)
		}
	}
}

func TestPairsExcuseOnePair(t *testing.T) {
	gone := rulesOf(t, Equivalence{Type: Pair, Path: PathStatus, Want: 200, Have: 404}, Equivalence{Type: Pair, Path: PathCode, Have: 101})
	for _, test := range []struct {
		want, have Reply
		found      string
	}{
		{Reply{Status: 200}, Reply{Status: 404, Code: 101}, "status status by r0\ncode code by r1"},
		{Reply{Status: 404, Code: 101}, Reply{Status: 200}, "status status\ncode code"},
		{Reply{Status: 200}, Reply{Status: 401, Code: 102}, "status status\ncode code"},
	} {
		if got := said(Compare(mapping.OpAttachment, test.want, test.have, gone)); got != test.found {
			t.Errorf("%+v and %+v: found %q, want %q", test.want, test.have, got, test.found)
		}
	}
}

func TestRulesHoldOnlyWhereTheyAreMeant(t *testing.T) {
	one := ok(`{"bug":[{"id":1,"is_active":1,"changes":{"flagtypes.name":1}}],"attachment":[]}`)
	two := ok(`{"bug":[{"id":1,"is_active":true,"changes":{"flagtypes.name":true}}],"attachment":[]}`)
	other := `type $.bug[id].changes["flagtypes.name"]`
	for path, want := range map[string]string{
		"$.bug[id].is_active":   other + "\ntype $.bug[id].is_active by r0",
		"$.bug[*].is_*":         other + "\ntype $.bug[id].is_active by r0",
		"$.*[id].is_active":     other + "\ntype $.bug[id].is_active by r0",
		"$.**.is_active":        other + "\ntype $.bug[id].is_active by r0",
		"**":                    other + " by r0\ntype $.bug[id].is_active by r0",
		"$.bug[*].changes.*":    other + " by r0\ntype $.bug[id].is_active",
		`$.**["flagtypes.*"]`:   other + " by r0\ntype $.bug[id].is_active",
		"$.bug":                 other + "\ntype $.bug[id].is_active",
		"$.*":                   other + "\ntype $.bug[id].is_active",
		"$.attachment[id].**":   other + "\ntype $.bug[id].is_active",
		"$.bug[*][*]":           other + "\ntype $.bug[id].is_active",
		"$.bug[id].is_active.*": other + "\ntype $.bug[id].is_active",
	} {
		if got := said(Compare(mapping.OpFlagTypes, one, two, rulesOf(t, Equivalence{Type: IntAsBool, Path: path}))); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
	elsewhere := rulesOf(t, Equivalence{Type: IntAsBool, Path: "**", Operation: mapping.OpAttachment})
	if got := said(Compare(mapping.OpFlagTypes, one, two, elsewhere)); strings.Contains(got, "by") {
		t.Errorf("a rule of another operation: %s", got)
	}
}

func TestMessagesAndHeadersHaveRulesToo(t *testing.T) {
	rules := rulesOf(t, Equivalence{Type: Regex, Path: "message", Pattern: `(.*) at line \d+`}, Equivalence{Type: Regex, Path: "header.et*", Pattern: `.*`})
	one := Reply{Status: 400, Code: 1, Message: "bad at line 1", Header: map[string]string{"etag": "a", "x": "1"}}
	two := Reply{Status: 400, Code: 1, Message: "bad at line 2", Header: map[string]string{"etag": "b", "x": "2"}}
	if got, want := said(Compare("", one, two, rules)), "message message by r0\nheader header.etag by r1\nheader header.x"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// With a map of ids, things are found again under their other ids.
func TestMappedIDsPair(t *testing.T) {
	rules := rulesOf(t,
		Equivalence{Type: IDMap, Path: "$.attachments[*]", Offset: 1000},
		Equivalence{Type: IDMap, Path: "$.attachments[*].id", Offset: 1000},
		Equivalence{Type: IDMap, Path: "$.**.flags[id].id", Table: map[int64]int64{1: 2, 2: 1}})
	one := ok(`{"attachments":{"5":{"id":5,"size":1,"flags":[{"id":1,"status":"+"},{"id":2,"status":"-"}]}}}`)
	two := ok(`{"attachments":{"1005":{"id":1005,"size":2,"flags":[{"id":2,"status":"+"},{"id":1,"status":"?"}]}}}`)
	want := strings.Join([]string{
		"value $.attachments[*] by r0", "value $.attachments[*].flags[id].id by r2", "value $.attachments[*].flags[id].id by r2",
		"value $.attachments[*].flags[id].status", "value $.attachments[*].id by r1", "value $.attachments[*].size",
	}, "\n")
	if got := said(Compare(mapping.OpAttachment, one, two, rules)); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

func TestRulesEnd(t *testing.T) {
	rule := goodRule("r")
	rules, _ := NewRules([]Equivalence{rule}, testNow)
	one, two := ok(`{"attachments":{"6":{"last_change_time":"2020-01-02T03:04:05Z"}}}`), ok(`{"attachments":{"6":{"last_change_time":"2020-01-02T03:04:06Z"}}}`)
	for at, want := range map[time.Time]string{rule.Expires.Add(-time.Second): "r", rule.Expires: "", rule.Expires.Add(time.Hour): ""} {
		found := Compare(mapping.OpAttachment, one, two, rules.At(at))
		if len(found) != 1 || found[0].Rule != want {
			t.Errorf("at %v found %s", at, said(found))
		}
	}
	if len(rules.At(rule.Expires.Add(time.Hour)).List()) != 1 {
		t.Error("a rule that has ended is gone from the list")
	}
}

func TestMistakesInRulesAreNamed(t *testing.T) {
	for field, change := range map[string]func(*Equivalence){
		"name":      func(e *Equivalence) { e.Name = " " },
		"type":      func(e *Equivalence) { e.Type, e.Within = "ignore", 0 },
		"operation": func(e *Equivalence) { e.Operation = "flag_type.delete" },
		"path":      func(e *Equivalence) { e.Path = "$.bug[id" },
		"within":    func(e *Equivalence) { e.Within = 0 },
		"pattern":   func(e *Equivalence) { e.Type, e.Within, e.Pattern = Regex, 0, "(" },
		"offset":    func(e *Equivalence) { e.Type, e.Within = IDMap, 0 },
		"table":     func(e *Equivalence) { e.Table = map[int64]int64{1: 2} },
		"owner":     func(e *Equivalence) { e.Owner = "" },
		"reason":    func(e *Equivalence) { e.Reason = "" },
		"expires":   func(e *Equivalence) { e.Expires = time.Time{} },
	} {
		rule := goodRule("r")
		change(&rule)
		rules, problems := NewRules([]Equivalence{goodRule("first"), rule}, testNow)
		if len(problems) != 1 || problems[0].Field != field || problems[0].Rule != 1 || problems[0].Warning || len(rules.List()) != 1 {
			t.Errorf("%s: %+v, and %d rules", field, problems, len(rules.List()))
		}
	}
	if _, problems := NewRules([]Equivalence{goodRule("r"), goodRule("r")}, testNow); len(problems) != 1 || problems[0].Field != "name" {
		t.Errorf("two of one name: %+v", problems)
	}
	for _, path := range []string{"", "bug.id]", "/x", "$..x", "$.a[", "$ .x", "$x"} {
		if _, err := compilePath(path); err == nil {
			t.Errorf("the path %q is taken", path)
		}
	}
}

func TestPlansDifferByPlan(t *testing.T) {
	one := jsontext.Value(`{"method":"PUT","path":"/rest/flag_type/7","query":{},"body":{"ids":[7],"is_active":1,"inclusions":["a","b"]}}`)
	two := jsontext.Value(`{"method":"POST","path":"/rest/flag_type/7","query":{},"body":{"ids":[7,8],"is_active":true,"inclusions":["b","a"]}}`)
	rules := rulesOf(t, Equivalence{Type: IntAsBool, Path: "$.body.is_*"})
	for _, test := range []struct {
		one, two jsontext.Value
		want     string
	}{
		{one, one, ""},
		{one, two, "plan $.body.ids[*]\nplan $.body.is_active by r0\nplan $.method"},
	} {
		if got := said(Plans(mapping.OpUpdateFlagTypes, test.one, test.two, rules)); got != test.want {
			t.Errorf("found %q, want %q", got, test.want)
		}
	}
}

// TestEachClassHasARow: a class without one would have no description, and no rule could excuse it. The documentation lists all classes.
func TestEachClassHasARow(t *testing.T) {
	page, err := os.ReadFile("../../../docs/explanation/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\nThe classes are ")
	list, _, _ = strings.Cut(list, ".")
	var documented []string
	for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(list, -1) {
		documented = append(documented, name[1])
	}
	if slices.Sort(documented); fmt.Sprint(documented) != fmt.Sprint(Classes()) {
		t.Errorf("docs/explanation/comparison.md lists the classes\n%v, and there are\n%v", documented, Classes())
	}
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Class") {
			name, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			count++
			if Class(name).Means() == "" || !slices.Contains(Classes(), Class(name)) {
				t.Errorf("the class %s has no row, or no description in it", name)
			}
		}
		return true
	})
	if count == 0 || count != len(Classes()) {
		t.Errorf("%d classes are declared, and there are %d rows", count, len(Classes()))
	}
}

// TestEachClassHasAFamily: a class of differences is either noise of a kind or never noise.
func TestEachClassHasAFamily(t *testing.T) {
	for _, class := range Classes() {
		never := class == ClassFailure || class == ClassPlan || class == ClassLatency
		if (class.NoiseFamily(nil) == "") != never {
			t.Errorf("the family of %s is %q", class, class.NoiseFamily(nil))
		}
		for member, of := range map[string]bool{"creation_time": class.HasTimes(), "summary": false} {
			if _, ofChange := (Difference{Class: class, Path: "$.attachments[*]." + member}).TimeApart(); ofChange != of {
				t.Errorf("that %s at %s is about when something was changed is %t, want %t", class, member, ofChange, of)
			}
		}
	}
}

// TestKindsKeepDifferencesApart: whoever accepts one difference has not accepted another one at the same path, such as that a text which
// became longer gained a script.
func TestKindsKeepDifferencesApart(t *testing.T) {
	const object, summary = "$.attachments[7]", "$.attachments[*].summary"
	for _, test := range []struct {
		class        Class
		path, object string
		want, have   string
		kind         string
	}{
		{ClassStatus, "status", "", "200", "404", "200 → 404"}, {ClassCode, "code", "", "0", "101", "0 → 101"},
		{ClassFailure, "failure", "", "", `"tracker-timeout"`, "nothing → tracker-timeout"},
		{ClassHeader, "header.etag", "", `"sent"`, "", "sent → nothing"}, {ClassMessage, "message", "", `"No."`, `"no."`, "letter case"},
		{ClassType, summary, object, "1", `"1"`, "integer → string"}, {ClassType, summary, object, "1", "1.0", "integer → number"},
		{ClassType, summary, object, "true", "{}", "boolean → object"}, {ClassNull, summary, object, "null", "[]", "null → array"},
		{ClassMissing, "$.bug[id]", "", `{"id":7}`, "", "at $.bug[id]"}, {ClassMissing, summary, object, `{"id":7}`, "", ""},
		{ClassExtra, summary, object, "", `"?"`, "?"}, {ClassExtra, summary, object, "", `"abc"`, ""},
		{ClassValue, summary, object, "7", "8", "at " + object}, {ClassValue, "$.attachments[*].bug_id", object, "7", "8", ""},
		{ClassValue, summary, object, "0", "1", "0 → 1"}, {ClassValue, summary, object, `"?"`, `"+"`, "? → +"},
		{ClassValue, summary, object, `"a text"`, `"A Text"`, "letter case"}, {ClassValue, summary, object, `"a text"`, `"a  text "`, "white space"},
		{ClassValue, summary, object, `"a < b"`, `"a &lt; b"`, "HTML escapes"}, {ClassValue, summary, object, `"a text"`, `"a t"`, "a shorter text"},
		{ClassValue, summary, object, `"a text"`, `"a text, copied"`, "a longer text"}, {ClassValue, summary, object, `"a text"`, `"such a text"`, "a longer text"},
		{ClassValue, summary, object, `"a text"`, `"a text<script>alert(1)</script>"`, "a longer text with ()/<>"},
		{ClassValue, summary, object, `"http://a/x"`, `"http://b/x"`, "another host"}, {ClassValue, summary, object, `"a text"`, `""`, "an empty text"},
		{ClassValue, summary, object, `"a text"`, `"another one"`, "at " + object + " another text"},
		{ClassValue, summary, object, `"a text"`, `"another <b>one</b>"`, "at " + object + " another text with /<>"},
		{ClassValue, summary, object, `"2020-01-02T01:00:00Z"`, `"2020-01-02T02:00:00+01:00"`, "the same time"},
		{ClassTime, summary, object, `"2020-01-02"`, `"2020-01-01"`, "earlier"}, {ClassTime, summary, object, `"2020-01-02"`, `"2020-01-03"`, "later"},
		{ClassSet, summary, object, `["a"]`, `["b"]`, "at " + object}, {ClassDigest, "$.data", object, "{}", "{}", "at " + object},
		{ClassDigest, "$", "", "{}", "{}", ""}, {ClassOrder, summary, object, "[1]", "[2]", ""}, {ClassPlan, "$.body", "", "1", "2", ""},
	} {
		d := Difference{Class: test.class, Path: test.path, Pointer: test.path, Object: test.object}
		if test.want != "" {
			d.Want = jsontext.Value(test.want)
		}
		if test.have != "" {
			d.Have = jsontext.Value(test.have)
		}
		if kind := d.Kind(); kind != test.kind {
			t.Errorf("%s at %s from %s to %s is of the kind %q, want %q", test.class, test.path, test.want, test.have, kind, test.kind)
		}
	}
}
