package compare

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// testNow is when rules are compiled.
var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// recorded gives the body of a recorded answer of a real tracker.
func recorded(t testing.TB, name string) string {
	t.Helper()
	file, err := os.Open("../../../test/wire/testdata/bugzilla-5.2.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := json.NewDecoder(file); decoder.More(); {
		var exchange struct {
			Name     string
			Response *struct{ Body string }
		}
		if err := decoder.Decode(&exchange); err != nil {
			t.Fatal(err)
		}
		if exchange.Name == name && exchange.Response != nil {
			return exchange.Response.Body
		}
	}
	t.Fatalf("there is no recording %q", name)
	return ""
}

// ok is a successful reply with a body.
func ok(body string) Reply { return Reply{Status: 200, Body: jsontext.Value(body)} }

// said writes differences as class and path, and the rule where there is one.
func said(differences []Difference) string {
	var lines []string
	for _, d := range differences {
		line := fmt.Sprintf("%s %s", d.Class, d.Path)
		if d.Rule != "" {
			line += " by " + d.Rule
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// planted changes one text of a body, which must be in it.
func planted(t *testing.T, body, old, new string) string {
	t.Helper()
	if !strings.Contains(body, old) {
		t.Fatalf("%q is not in %s", old, body)
	}
	return strings.Replace(body, old, new, 1)
}

func TestPlantedDifferencesOfTheAnswerAreFound(t *testing.T) {
	failed := Reply{Status: 401, Code: 102, Message: "You are not authorized to access bug #4."}
	for name, test := range map[string]struct {
		change func(*Reply)
		want   string
		broken bool
	}{
		"status":        {func(r *Reply) { r.Status = 404 }, "status status", false},
		"code":          {func(r *Reply) { r.Code = 101 }, "code code", false},
		"code and text": {func(r *Reply) { r.Code, r.Message = 101, "Bug #4 does not exist." }, "code code", false},
		"message":       {func(r *Reply) { r.Message = "No." }, "message message", false},
		"header":        {func(r *Reply) { r.Header = map[string]string{"etag": "x"} }, "header header.etag", false},
		"failure":       {func(r *Reply) { *r = Reply{Failure: "tracker-timeout"} }, "failure failure", true},
		"its mistake":   {func(r *Reply) { r.Status = 500 }, "status status", true},
		"its code":      {func(r *Reply) { r.Code = mapping.CodeTrackerFailure }, "code code", true},
		"nothing":       {func(*Reply) {}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			other := failed
			test.change(&other)
			if got := said(Compare(mapping.OpAttachment, failed, other, Rules{})); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
			if got := said(Compare(mapping.OpAttachment, other, failed, Rules{})); got != test.want {
				t.Errorf("the other way round found %q, want %q", got, test.want)
			}
			if other.IsBroken() != test.broken {
				t.Errorf("that the tracker does not work is %t, want %t", !test.broken, test.broken)
			}
		})
	}
}

// TestAddressesOfMemoryAreNoDifference, wherever texts are compared.
func TestAddressesOfMemoryAreNoDifference(t *testing.T) {
	const one, two = "0x559be16b3b60", "0x7fa012"
	message := func(text string) Reply { return Reply{Status: 404, Code: 51, Message: text} }
	for form, reply := range map[string]func(string) Reply{
		"There is no component named 'ARRAY(%s)' in it.":  message,
		`{"bug":[{"id":1,"description":"a HASH(%s) b"}]}`: ok, `{"bug":[{"id":1,"description":"a HASH\u0028%s) b"}]}`: ok,
		`{"bug":[{"id":1,"inclusions":["ARRAY(%s)"]}]}`: ok, `{"bug":[{"id":1,"values":["X","ARRAY(%s)","?"]}]}`: ok,
		`{"bug":[{"id":1,"x":{"y":[[{"z":"CODE(%s)"}]]}}]}`: ok, `{"bug":[{"name":"HASH(%s)","type":"bug"}]}`: ok,
	} {
		first, second := fmt.Sprintf(form, one), fmt.Sprintf(form, two)
		if found := Compare(mapping.OpFlagTypes, reply(first), reply(second), Rules{}); len(found) > 0 {
			t.Errorf("%s: found %s", first, said(found))
		}
		for _, other := range []string{strings.Replace(second, "0x", "0y", 1), strings.Replace(second, two, two+"! ", 1)} {
			if found := Compare(mapping.OpFlagTypes, reply(first), reply(other), Rules{}); len(found) != 1 {
				t.Errorf("%s and %s: found %q, want one difference", first, other, said(found))
			}
		}
	}
	for found, replies := range map[string][2]Reply{
		"message message":             {message("'ARRAY(0x1)'"), message("'HASH(0x1)'")},
		"value $.bug[id].name":        {ok(`{"bug":[{"id":1,"name":"CRASH(0x1)"}]}`), ok(`{"bug":[{"id":1,"name":"CRASH(0x2)"}]}`)},
		"value $.bug[id].description": {ok(`{"bug":[{"id":1,"description":"HASH(0x1), old"}]}`), ok(`{"bug":[{"id":1,"description":"HASH(0x2), new"}]}`)},
	} {
		if got := said(Compare(mapping.OpFlagTypes, replies[0], replies[1], Rules{})); got != found {
			t.Errorf("beside an address: found %q, want %q", got, found)
		}
	}
}

// plant is one change of a recorded body and what must be found of it, once.
type plant struct{ old, new, want string }

// TestPlantedDifferencesAreFound in replies of every operation that has a body to compare.
func TestPlantedDifferencesAreFound(t *testing.T) {
	for _, reply := range []struct {
		operation mapping.Operation
		body      string
		plants    map[string]plant
	}{
		{mapping.OpFlagTypes, recorded(t, "ft.get.product.admin"), map[string]plant{
			"nothing":            {`"bug":[`, `"bug":[ `, ""},
			"missing":            {`"description":"tponly flag",`, ``, "missing $.bug[id].description"},
			"extra":              {`"name":"incexc"`, `"name":"incexc","cf_new":1`, "extra $.bug[id].cf_new"},
			"odd extra":          {`"name":"incexc"`, `"name":"incexc","my secret.txt":1`, `extra $.bug[id]["~ffac63e9"]`},
			"type":               {`"id":18`, `"id":"18"`, "type $.bug[id].id"},
			"float":              {`"id":18`, `"id":18.0`, "type $.bug[id].id"},
			"boolean":            {`"is_requesteeble":true`, `"is_requesteeble":1`, "type $.bug[id].is_requesteeble"},
			"value":              {`"excprod flag"`, `"another"`, "value $.bug[id].description"},
			"truth":              {`"is_active":true`, `"is_active":false`, "value $.bug[id].is_active"},
			"null":               {`"excprod flag"`, `null`, "null $.bug[id].description"},
			"one value less":     {`["X","?","+","-"]`, `["X","+","-"]`, "missing $.bug[id].values[*]"},
			"one value more":     {`["X","+","-"]`, `["X","?","+","-"]`, "extra $.attachment[id].values[*]"},
			"values reordered":   {`["X","?","+","-"]`, `["?","X","+","-"]`, "order $.bug[id].values"},
			"turned round":       {`["X","?","+","-"]`, `["+","?","X"]`, "missing $.bug[id].values[*]\norder $.bug[id].values"},
			"moved, one more":    {`["X","?","+","-"]`, `["-","X","?","!","+"]`, "extra $.bug[id].values[*]\norder $.bug[id].values"},
			"moved, one other":   {`["X","?","+","-"]`, `["-","X","!","+"]`, "value $.bug[id].values[*]\norder $.bug[id].values"},
			"two less":           {`["X","?","+","-"]`, `["?","-"]`, "missing $.bug[id].values[*]\nmissing $.bug[id].values[*]"},
			"another value":      {`["X","?","+","-"]`, `["X","!","+","-"]`, "value $.bug[id].values[*]"},
			"components shuffle": {`["Component A","Comp B"]`, `["Comp B","Component A"]`, ""},
			"another component":  {`["Component A","Comp B"]`, `["Comp B","Component C"]`, "set $.bug[id].inclusions"},
			"odd components":     {`["Component A","Comp B"]`, `["Component A","Comp B",true]`, "set $.bug[id].inclusions"},
			"a component twice":  {`["Component A","Comp B"]`, `["Comp B","Component A","Comp B"]`, "set $.bug[id].inclusions"},
			"no id":              {`"id":18,`, ``, "missing $.bug[name,type].id"},
			"another id":         {`"id":18,`, `"id":99,`, "value $.bug[name,type].id"},
			"no list":            {`"bug":[`, `"bogus":[`, "missing $.bug\nextra $.bogus"},
		}},
		{mapping.OpAttachment, recorded(t, "att.get.6.dev"), map[string]plant{
			"content":         {`"ZmxhZ2dlZAo="`, `"ZmxhZ2dlZAp="`, "digest $.attachments[*].data"},
			"content gone":    {`"ZmxhZ2dlZAo="`, `null`, "null $.attachments[*].data"},
			"time":            {`"last_change_time":"2020-01-02T03:04:05Z"`, `"last_change_time":"2020-01-02T03:04:06Z"`, "time $.attachments[*].last_change_time"},
			"notation":        {`"last_change_time":"2020-01-02T03:04:05Z"`, `"last_change_time":"2020-01-02 03:04:05"`, "value $.attachments[*].last_change_time"},
			"boolean":         {`"is_private":0`, `"is_private":false`, "type $.attachments[*].is_private"},
			"flag status":     {`"status":"+"`, `"status":"-"`, "value $.attachments[*].flags[id].status"},
			"requestee":       {`"requestee":"plain@example.com",`, ``, "missing $.attachments[*].flags[id].requestee"},
			"requestee added": {`"id":5,`, `"id":5,"requestee":"a@b",`, "extra $.attachments[*].flags[id].requestee"},
			"another key":     {`"attachments":{"6"`, `"attachments":{"7"`, "missing $.attachments[*]\nextra $.attachments[*]"},
			"a bug":           {`"bugs":{}`, `"bugs":{"1":[]}`, "extra $.bugs[*]"},
			"list for object": {`"bugs":{}`, `"bugs":[]`, "type $.bugs"},
		}},
		{mapping.OpBugAttachments, recorded(t, "att.list.bug5.insider"), map[string]plant{
			"size":    {`"size":23`, `"size":24`, "value $.bugs[*][id].size"},
			"content": {`"data":"cHJpdmF`, `"data":"cHJpdmE`, "digest $.bugs[*][id].data"},
			"flag":    {`"type_id":1`, `"type_id":"1"`, "type $.bugs[*][id].flags[id].type_id"},
			"summary": {`"private in bug five"`, `"public"`, "value $.bugs[*][id].summary"},
		}},
		{mapping.OpBugAttachments, recorded(t, "att.list.fields.ex_id"), map[string]plant{
			"without ids": {`"size":12`, `"size":13`, "value $.bugs[*][*].size"},
		}},
		{mapping.OpFlagTypes, `{"bug":[{"id":1,"inclusions":[true,1]}]}`, map[string]plant{
			"truth in a set": {`[true,1]`, `[1,false]`, "set $.bug[id].inclusions"},
		}},
		{mapping.OpUpdateAttachments, recorded(t, "att.update.flags.two_attachments"), map[string]plant{
			"flag":     {`"removed":"norequestee-"`, `"removed":"x-"`, `value $.attachments[id].changes["flagtypes.name"].removed`},
			"null":     {`"removed":""`, `"removed":null`, `null $.attachments[id].changes["flagtypes.name"].removed`},
			"shuffled": {`"id":12`, `"id":14`, "missing $.attachments[id]\nextra $.attachments[id]"},
		}},
		{mapping.OpUpdateFlagTypes, `{"flagtypes":[{"id":3,"name":"a","changes":{}},{"id":4,"name":"b","changes":{"sortkey":{"removed":"1","added":"2"}}}]}`, map[string]plant{
			"change": {`"added":"2"`, `"added":"3"`, "value $.flagtypes[id].changes.sortkey.added"},
			"order":  {`{"id":3,"name":"a","changes":{}},{"id":4,"name":"b","changes":{"sortkey":{"removed":"1","added":"2"}}}`, `{"id":4,"name":"b","changes":{"sortkey":{"removed":"1","added":"2"}}},{"id":3,"name":"a","changes":{}}`, ""},
		}},
		{mapping.OpCreateAttachment, `{"ids":[11,12]}`, map[string]plant{
			"order": {`[11,12]`, `[12,11]`, "order $.ids"},
			"id":    {`[11,12]`, `[11,13]`, "value $.ids[*]"},
			"more":  {`[11,12]`, `[11,12,13]`, "extra $.ids[*]"},
			"twice": {`[11,12]`, `[11,11,12]`, "extra $.ids[*]"},
			"text":  {`[11,12]`, `["11",12]`, "type $.ids[*]"},
		}},
	} {
		for name, p := range reply.plants {
			changed := planted(t, reply.body, p.old, p.new)
			if got := said(Compare(reply.operation, ok(reply.body), ok(changed), Rules{})); got != p.want {
				t.Errorf("%s, %s: found:\n%s\nwant:\n%s", reply.operation, name, got, p.want)
			}
		}
	}
}

// TestEveryReadHasAShape: without one the elements of its lists are compared by their positions.
func TestEveryReadHasAShape(t *testing.T) {
	for _, operation := range mapping.Operations() {
		if !operation.IsWrite() && shapes[operation] == nil {
			t.Errorf("nothing is known of the lists of %s", operation)
		}
	}
}

// TestRemaining: what is still there has its present values, what is gone is unstable, and what a refusal hides remains.
func TestRemaining(t *testing.T) {
	good, refused := Reply{Status: 200}, Reply{Status: 404, Code: 51}
	at := func(class Class, path, have string) Difference {
		return Difference{Class: class, Path: path, Pointer: path, Have: jsontext.Value(have)}
	}
	value, status := at(ClassValue, "$.a", "1"), at(ClassStatus, PathStatus, "500")
	for name, test := range map[string]struct {
		now           Reply
		first, second []Difference
		want          string
	}{
		"still there":                {good, []Difference{value}, []Difference{at(ClassValue, "$.a", "2")}, "2"},
		"another class":              {good, []Difference{value}, []Difference{at(ClassType, "$.a", "2")}, "1 unstable"},
		"another place":              {good, []Difference{value}, []Difference{at(ClassValue, "$.b", "2")}, "1 unstable"},
		"gone":                       {good, []Difference{value, status}, nil, "1 unstable,500 unstable"},
		"hidden":                     {good, []Difference{value}, []Difference{at(ClassStatus, PathStatus, "404")}, "1"},
		"an outcome is never hidden": {good, []Difference{status}, []Difference{at(ClassFailure, PathFailure, "0")}, "500 unstable"},
		"both refuse":                {refused, []Difference{value}, []Difference{at(ClassStatus, PathStatus, "403")}, "1 unstable"},
	} {
		var got []string
		for _, d := range Remaining(good, test.now, test.first, test.second) {
			text := string(d.Have)
			if d.Unstable {
				text += " unstable"
			}
			got = append(got, text)
		}
		if strings.Join(got, ",") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestChanged: a change of the reference explains a difference at the same place or in an object that says that it was changed, and
// never a failure or another structure.
func TestChanged(t *testing.T) {
	at := func(class Class, path, object string) Difference {
		return Difference{Class: class, Path: path, Pointer: path, Object: object, Have: jsontext.Value("503")}
	}
	for name, test := range map[string]struct {
		change, difference Difference
		want               bool
	}{
		"the same place":          {at(ClassValue, "$.o.a", "$.o"), at(ClassValue, "$.o.a", "$.o"), true},
		"another place":           {at(ClassValue, "$.o.b", "$.o"), at(ClassValue, "$.o.a", "$.o"), false},
		"a change time":           {at(ClassTime, "$.o.last_change_time", "$.o"), at(ClassValue, "$.o.a", "$.o"), true},
		"that of another object":  {at(ClassTime, "$.p.last_change_time", "$.p"), at(ClassValue, "$.o.a", "$.o"), false},
		"the object itself":       {at(ClassMissing, "$.o", "$.o"), at(ClassValue, "$.o.a", "$.o"), true},
		"the whole":               {at(ClassDigest, "$", ""), at(ClassValue, "$.o.a", "$.o"), true},
		"the status":              {at(ClassStatus, PathStatus, ""), at(ClassValue, "$.o.a", "$.o"), true},
		"not a failure":           {at(ClassStatus, PathStatus, ""), at(ClassStatus, PathStatus, ""), false},
		"a value and a structure": {at(ClassValue, "$.o.a", "$.o"), at(ClassMissing, "$.o.a", "$.o"), false},
		"two structures":          {at(ClassType, "$.o.a", "$.o"), at(ClassMissing, "$.o.a", "$.o"), true},
		"what a rule excuses":     {Difference{Class: ClassValue, Pointer: "$.o.a", Rule: "r"}, at(ClassValue, "$.o.a", "$.o"), false},
	} {
		if got := Changed([]Difference{test.change})(test.difference); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
