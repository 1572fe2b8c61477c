package canary

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/canary/verdict"
)

// plantedReply is a change of a candidate's reply, and what is found: class and path of each finding, and a text that the note of each has.
// Nothing is found where the change means nothing.
type plantedReply struct {
	target string
	change func(status int, body string) (int, string)
	found  []string
	note   string
}

// The reads whose replies are changed.
const (
	plantedAttachment = "/rest/bug/attachment/1"
	plantedFlags      = "/rest/bug/attachment/6"
	plantedUnicode    = "/rest/bug/attachment/9"
	plantedContent    = "/rest/bug/attachment/4"
	plantedList       = "/rest/bug/1/attachment?exclude_fields=data"
	plantedTypes      = "/rest/flag_type/TestProduct"
	plantedUnknown    = "/rest/bug/999/attachment"
)

// text replaces a text of a body.
func text(from, to string) func(int, string) (int, string) {
	return func(status int, body string) (int, string) { return status, strings.ReplaceAll(body, from, to) }
}

// tree changes the values of a body, which may be in any order.
func tree(edit func(reply map[string]any)) func(int, string) (int, string) {
	return func(status int, body string) (int, string) {
		var reply map[string]any
		from := json.NewDecoder(strings.NewReader(body))
		from.UseNumber()
		if from.Decode(&reply) != nil {
			return status, body
		}
		edit(reply)
		changed, _ := json.Marshal(reply) // it was JSON before
		return status, string(changed)
	}
}

// list changes a list of a body, which has a path such as "bugs 1".
func list(path string, edit func(list []any) []any) func(int, string) (int, string) {
	return tree(func(reply map[string]any) {
		names := strings.Fields(path)
		last := len(names) - 1
		for _, name := range names[:last] {
			reply, _ = reply[name].(map[string]any)
		}
		if old, ok := reply[names[last]].([]any); ok {
			reply[names[last]] = edit(old)
		}
	})
}

func swapped(list []any) []any { return slices.Concat([]any{list[1], list[0]}, list[2:]) }

func another(status int, body string) func(int, string) (int, string) {
	return func(int, string) (int, string) { return status, body }
}

// plantedReplies are all, by name.
func plantedReplies() map[string]plantedReply {
	all := map[string]plantedReply{}
	for _, some := range []map[string]plantedReply{plantedFields(), plantedTexts(), plantedLists(), plantedErrors()} {
		maps.Copy(all, some)
	}
	return all
}

const plantedSummary = "$.attachments[*].summary"

func plantedFields() map[string]plantedReply {
	member := func(edit func(attachment map[string]any)) func(int, string) (int, string) {
		return tree(func(reply map[string]any) { edit(reply["attachments"].(map[string]any)["1"].(map[string]any)) })
	}
	return map[string]plantedReply{
		"nothing":             {plantedAttachment, text("", ""), nil, ""},
		"a missing field":     {plantedAttachment, member(func(a map[string]any) { delete(a, "creator") }), []string{"missing $.attachments[*].creator"}, "The candidate leaves this out"},
		"null":                {plantedAttachment, text(`"public text"`, `null`), []string{"null " + plantedSummary}, "string → null"},
		"an empty text":       {plantedAttachment, text(`"public text"`, `""`), []string{"value " + plantedSummary}, "an empty text"},
		"a text for a number": {plantedAttachment, text(`"size":13`, `"size":"13"`), []string{"type $.attachments[*].size"}, "integer → string"},
		"a number for a text": {plantedAttachment, text(`"public text"`, `5`), []string{"type " + plantedSummary}, "string → integer"},
		"a fraction":          {plantedAttachment, text(`"size":13`, `"size":13.0`), []string{"type $.attachments[*].size"}, "integer → number"},
		"a text as id":        {plantedAttachment, member(func(a map[string]any) { a["id"] = "1" }), []string{"type $.attachments[*].id"}, "integer → string"},
		"false for 0":         {plantedAttachment, text(`"is_private":0`, `"is_private":false`), []string{"type $.attachments[*].is_private"}, "integer → boolean"},
		"is_private":          {plantedAttachment, text(`"is_private":0`, `"is_private":1`), []string{"value $.attachments[*].is_private"}, "0 → 1"},
		"a flag":              {plantedAttachment, text(`"status":"?"`, `"status":"+"`), []string{"value $.attachments[*].flags[id].status"}, "? → +"},
		"an extra null":       {plantedAttachment, text(`"status":"?"`, `"status":"?","requestee":null`), []string{"extra $.attachments[*].flags[id].requestee"}, "Only the candidate has this"},
		"another size":        {plantedAttachment, text(`"size":13`, `"size":9007199254740993`), []string{"value $.attachments[*].size"}, ""},
	}
}

func plantedTexts() map[string]plantedReply {
	const at = "2020-01-02T03:04:05Z"
	times := func(class string) (all []string) {
		for _, name := range []string{"creation_time", "flags[id].creation_date", "flags[id].modification_date", "last_change_time"} {
			all = append(all, class+" $.attachments[*]."+name)
		}
		return all
	}
	return map[string]plantedReply{
		"another zone":     {plantedAttachment, text(at, "2020-01-02T04:04:05+01:00"), times("value"), "the same time"},
		"milliseconds":     {plantedAttachment, text(at, "2020-01-02T03:04:05.000Z"), times("value"), "the same time"},
		"another notation": {plantedAttachment, text(at, "2020-01-02 03:04:05"), times("value"), "the same time"},
		"one second":       {plantedAttachment, text(at, "2020-01-02T03:04:06Z"), times("time"), "later"},
		"white space":      {plantedAttachment, text("public text", "public text "), []string{"value " + plantedSummary}, "white space"},
		"a no-break space": {plantedAttachment, text("public text", "public\u00a0text"), []string{"value " + plantedSummary}, "white space"},
		"CRLF":             {plantedAttachment, text("public text", `public text\r\n`), []string{"value " + plantedSummary}, "white space"},
		"letter case":      {plantedAttachment, text("public text", "Public text"), []string{"value " + plantedSummary}, "letter case"},
		"HTML escapes":     {plantedUnicode, text("☃\"", "&#9731;\""), []string{"value " + plantedSummary}, "HTML escapes"},
		"decomposed":       {plantedUnicode, text("résumé", "re\u0301sume\u0301"), []string{"value " + plantedSummary}, "another text"},
		"two encodings":    {plantedUnicode, text("résumé", "rÃ©sumÃ©"), []string{"value " + plantedSummary}, "another text"},
		"escapes of JSON":  {plantedUnicode, text("résumé", `r\u00e9sum\u00e9`), nil, ""},
		"white space of JSON": {plantedAttachment, func(status int, body string) (int, string) {
			var to bytes.Buffer
			_ = json.Indent(&to, []byte(body), "\t", " ") // else it is empty
			return status, to.String() + "\n"
		}, nil, ""},
	}
}

func plantedLists() map[string]plantedReply {
	return map[string]plantedReply{
		"order of attachments": {plantedList, list("bugs 1", swapped), []string{"order $.bugs[*]"}, ""},
		"order of flags":       {plantedFlags, list("attachments 6 flags", swapped), []string{"order $.attachments[*].flags"}, ""},
		"order of flag types":  {plantedTypes, list("bug", swapped), []string{"order $.bug"}, ""},
		"order of components": {plantedTypes, tree(func(reply map[string]any) {
			for _, one := range reply["bug"].([]any) {
				if of, ok := one.(map[string]any)["inclusions"].([]any); ok && len(of) > 1 {
					of[0], of[1] = of[1], of[0]
				}
			}
		}), nil, ""},
		"a missing entry": {plantedList, list("bugs 1", func(list []any) []any { return list[1:] }), []string{"missing $.bugs[*][id]"}, "at $.bugs[1][1]"},
		"an entry twice":  {plantedList, list("bugs 1", func(list []any) []any { return append(list, list[0]) }), []string{"extra $.bugs[*][id]"}, "at $.bugs[1][1]"},
		"a private entry": {plantedList, list("bugs 1", func(list []any) []any {
			return append(list, map[string]any{"id": 2, "is_private": 1, "summary": "private text"})
		}), []string{"extra $.bugs[*][id]"}, "at $.bugs[1][2]"},
		"flags of another": {plantedList, tree(func(reply map[string]any) {
			of := reply["bugs"].(map[string]any)["1"].([]any)
			of[0].(map[string]any)["flags"] = of[1].(map[string]any)["flags"]
		}), []string{"extra $.bugs[*][id].flags[id]", "missing $.bugs[*][id].flags[id]"}, ""},
		"another id of a type": {plantedTypes, list("bug", func(list []any) []any {
			list[0].(map[string]any)["id"] = 1000
			return list
		}), []string{"value $.bug[name,type].id"}, ""},
		"another name of a type": {plantedTypes, text(`"needinfo"`, `"needsinfo"`), []string{"value $.bug[id].name"}, "another text"},
	}
}

// plantedErrors are of contents, codes and statuses.
func plantedErrors() map[string]plantedReply {
	return map[string]plantedReply{
		"another byte": {plantedContent, func(status int, body string) (int, string) {
			at := strings.Index(body, `"data":"`) + 500_000
			swap := map[bool]string{true: "B", false: "A"}[body[at] == 'A']
			return status, body[:at] + swap + body[at+1:]
		}, []string{"digest $.attachments[*].data"}, "at $.attachments[4]"},
		"line breaks in base64": {plantedAttachment, text("aGVsbG8gcHVibGljCg==", `aGVsbG8g\r\ncHVibGljCg==`), []string{"digest $.attachments[*].data"}, "at $.attachments[1]"},
		"another code":          {plantedUnknown, text(`"code":101`, `"code":100`), []string{"code code"}, ""},
		"another status":        {plantedUnknown, func(_ int, body string) (int, string) { return http.StatusBadRequest, body }, []string{"status status"}, ""},
		"another message":       {plantedUnknown, text("#999", "999"), []string{"message message"}, ""},
		"no documentation":      {plantedUnknown, tree(func(reply map[string]any) { delete(reply, "documentation") }), []string{"missing $.documentation"}, ""},
		"no error":              {plantedUnknown, another(http.StatusOK, `{"bugs":{},"attachments":{}}`), []string{"code code", "status status"}, ""},
		"a new error":           {plantedAttachment, another(http.StatusNotFound, `{"error":true,"code":101,"message":"gone"}`), []string{"code code", "status status"}, ""},
		"201":                   {plantedAttachment, func(_ int, body string) (int, string) { return http.StatusCreated, body }, []string{"status status"}, ""},
	}
}

func (p plantedReply) apply(status int, body []byte) (int, []byte) {
	changed, now := p.change(status, string(body))
	return changed, []byte(now)
}

// TestPlantedReplies: each difference is found once, in its class, at its place and for its caller, in both phases that compare. What
// means nothing is not found.
func TestPlantedReplies(t *testing.T) {
	t.Parallel()
	const ids = "switchover:\n  ids: {attachment: {mode: identity}, flag: {mode: identity}, flag_type: {mode: identity}}\n  rules: [{name: all, writes: old, reads: "
	for _, phase := range []string{"old-compare", "new-compare"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			var current atomic.Pointer[plantedReply]
			p := newPair(t, pairOptions{canary: "  confirm_after: 1ms", settings: ids + phase + "}]", changeNew: func(_ *http.Request, _ int64, status int, body []byte) (int, []byte) {
				if planted := current.Load(); planted != nil {
					return planted.apply(status, body)
				}
				return status, body
			}})
			for name, planted := range plantedReplies() {
				current.Store(&planted)
				must(t, http.MethodPost, p.Operators+"/canary/reset", `{"actor":"ada","reason":"a test"}`)
				p.read(t, planted.target, "X-BUGZILLA-API-KEY: "+fixtureKey("dev"))
				planted.check(t, name, p.report(t, 1).Report)
			}
		})
	}
}

func (p plantedReply) check(t *testing.T, name string, r verdict.Report) {
	t.Helper()
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.Class+" "+f.Path)
		if f.Kind != "reply" || f.Count != 1 || !strings.Contains(f.Note, p.note) || len(f.Scopes) != 1 || f.Scopes[0].Caller != "key" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	slices.Sort(found)
	want := verdict.Inconclusive
	if len(p.found) > 0 {
		want = verdict.Fail
	}
	if !slices.Equal(found, p.found) || r.Verdict != want || r.Overall.Compared != 1 {
		t.Errorf("%s: the verdict is %s, found %q, want %q; %+v", name, r.Verdict, found, p.found, r.Overall)
	}
}

// TestPlantedRepliesInReplays: the same is found in replays, against a tracker and against what was recorded. The user agent of a
// request says which reply is changed.
func TestPlantedRepliesInReplays(t *testing.T) {
	t.Parallel()
	replies := plantedReplies()
	names := slices.Sorted(maps.Keys(replies))
	base := serveChanged(t, tracker.New(tracker.Options{Seed: tracker.SeedFixture}), nil)
	odd := serveChanged(t, tracker.New(tracker.Options{Seed: tracker.SeedFixture}), func(r *http.Request, _ int64, status int, body []byte) (int, []byte) {
		if n, err := strconv.Atoi(r.UserAgent()); err == nil {
			return replies[names[n]].apply(status, body)
		}
		return status, body
	})
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	f := process.Serve(t, nil, "record", "--tracker", base, "--out", file)
	want := map[string]int64{}
	for n, name := range names {
		call(t, http.MethodGet, f.Clients+replies[name].target, "", "User-Agent: "+strconv.Itoa(n))
		for _, found := range replies[name].found {
			want[found]++
		}
	}
	f.Signal(t, syscall.SIGTERM)
	f.Wait(t, longest)
	for _, against := range []string{"", base} {
		args := []string{"replay", file, "--tracker", odd, "--confirm-after", "1ms", "--output", "json"}
		if against != "" {
			args = append(args, "--against", against)
		}
		p := process.Launch(t, process.Spec{Program: process.Portico(t), Args: args, Fails: true})
		code := p.Wait(t, longest)
		var r verdict.Report
		process.Must(t, json.Unmarshal([]byte(p.Out.String()), &r))
		found, kinds := map[string]int64{}, map[string]bool{}
		for _, f := range r.Findings {
			found[f.Class+" "+f.Path] += f.Count
			_, kind, _ := strings.Cut(f.Note, "} (")
			kinds[strings.TrimSuffix(kind, ")")] = true
		}
		for _, kind := range []string{"white space", "letter case", "an empty text"} {
			if !kinds[kind] {
				t.Errorf("against %q: no note names the kind %q: %v", against, kind, kinds)
			}
		}
		if !maps.Equal(found, want) || code != 1 || r.Overall.Compared != int64(len(names)) {
			t.Errorf("against %q: exit code %d, found %v, want %v; %+v, dropped %v", against, code, found, want, r.Overall, r.Dropped)
		}
	}
}
