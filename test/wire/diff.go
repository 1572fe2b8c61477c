package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// recordingDays are the first characters of the days of the recordings: times of these days are those of writes made then, and
// differ on every run.
const recordingDays = "2026-11-2"

// Diff compares an answer with the recorded one and lists the differences; none means equal. Each difference begins with
// what it is about: "status", "header NAME" or "body PATH". Texts of messages, the order of members and times of the day of
// recording do not count (tracker-behaviour.md section 13).
func Diff(recorded, got Response) []string {
	var diffs []string
	if recorded.Status != got.Status {
		diffs = append(diffs, fmt.Sprintf("status: recorded %d, got %d", recorded.Status, got.Status))
	}
	diffs = append(diffs, diffHeaders(recorded, got)...)
	return append(diffs, diffBody(recorded, got)...)
}

// exactHeaders must be the same, presentHeaders must be there or not be there (tracker-behaviour.md section 1, Representation).
var (
	exactHeaders = []string{"content-type", "access-control-allow-origin", "x-content-type-options",
		"x-frame-options", "x-xss-protection", "content-encoding", "location", "www-authenticate"}
	presentHeaders = []string{"etag", "set-cookie", "vary", "cache-control", "last-modified", "transfer-encoding", "content-length"}
	listHeaders    = []string{"allow", "access-control-allow-headers", "access-control-allow-methods"}
)

func diffHeaders(recorded, got Response) []string {
	var diffs []string
	differ := func(name string) {
		diffs = append(diffs, fmt.Sprintf("header %s: recorded %q, got %q", name, recorded.Headers[name], got.Headers[name]))
	}
	for _, name := range exactHeaders {
		if recorded.Headers[name] != got.Headers[name] {
			differ(name)
		}
	}
	for _, name := range presentHeaders {
		if (recorded.Headers[name] == "") != (got.Headers[name] == "") {
			differ(name)
		}
	}
	for _, name := range listHeaders {
		if !slices.Equal(parts(recorded.Headers[name]), parts(got.Headers[name])) {
			differ(name)
		}
	}
	if strings.Contains(got.Headers["etag"], `"`) {
		differ("etag")
	}
	return diffs
}

// parts splits a header whose items come in any order.
func parts(value string) []string {
	items := strings.Split(strings.ReplaceAll(value, " ", ""), ",")
	slices.Sort(items)
	return items
}

func diffBody(recorded, got Response) []string {
	switch {
	case recorded.HTML:
		if !strings.Contains(strings.ToLower(string(got.Body)), "<html") {
			return []string{"body: recorded a page, got " + shorten(got.Body)}
		}
		return nil
	case recorded.Length > 0:
		if n := utf8.RuneCount(got.Body); n != recorded.Length {
			return []string{fmt.Sprintf("body length: recorded %d characters, got %d", recorded.Length, n)}
		}
		return nil
	case len(recorded.Body) == 0:
		if len(got.Body) > 0 {
			return []string{"body: recorded none, got " + shorten(got.Body)}
		}
		return nil
	}
	want, wantFrame, err := decode(recorded.Body)
	if err != nil {
		return []string{"body: the recorded one is no JSON: " + err.Error()}
	}
	have, haveFrame, err := decode(got.Body)
	if err != nil {
		return []string{"body: got no JSON: " + shorten(got.Body)}
	}
	if wantFrame != haveFrame {
		return []string{fmt.Sprintf("body frame: recorded %q, got %q", wantFrame, haveFrame)}
	}
	return diffValue("", normal(want), normal(have))
}

func shorten(b []byte) string {
	if len(b) > 120 {
		return fmt.Sprintf("%q and %d bytes more", b[:120], len(b)-120)
	}
	return fmt.Sprintf("%q", b)
}

var jsonp = regexp.MustCompile(`(?s)^(/\*\*/[A-Za-z0-9_.\[\]]+\()(.*)(\))$`)

// decode reads JSON, and JSON in the frame of a callback.
func decode(body []byte) (v any, frame string, err error) {
	if m := jsonp.FindSubmatch(body); m != nil {
		body, frame = m[2], string(m[1])+string(m[3])
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && d.More() {
		err = fmt.Errorf("text after the JSON")
	}
	return v, frame, err
}

var reference = regexp.MustCompile(`(ARRAY|HASH)\(?0x[0-9a-f]+\)?=*`)

// normal brings what comes in random order into one, and masks addresses and texts of messages.
func normal(v any) any {
	switch v := v.(type) {
	case string:
		return reference.ReplaceAllString(v, "$1(address)")
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
		sortMember(v, "inclusions", "")
		sortMember(v, "flagtypes", "id")
		if v["error"] == true {
			mask(v, "message")
			mask(v, "documentation")
		}
	}
	return v
}

func mask(o map[string]any, name string) {
	if s, ok := o[name].(string); ok && s != "" {
		o[name] = "(text)"
	}
}

func sortMember(o map[string]any, name, by string) {
	list, ok := o[name].([]any)
	if !ok {
		return
	}
	rank := func(v any) string {
		if item, ok := v.(map[string]any); ok {
			v = item[by]
		}
		return fmt.Sprintf("%20v", v)
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(rank(a), rank(b)) })
}

// diffValue compares two JSON values; the path says where in the body they stand.
func diffValue(path string, want, have any) []string {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			return diffObject(path, w, h)
		}
	case []any:
		if h, ok := have.([]any); ok {
			return diffArray(path, w, h)
		}
	case string:
		if h, ok := have.(string); ok && sameTime(w, h) {
			return nil
		}
	}
	if same(want, have) {
		return nil
	}
	return []string{fmt.Sprintf("body %s: recorded %s, got %s", path, show(want), show(have))}
}

func same(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shorten(b)
}

var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// sameTime lets any time stand for one of the day of recording.
func sameTime(want, have string) bool {
	return timeForm.MatchString(want) && strings.HasPrefix(want, recordingDays) && timeForm.MatchString(have)
}

func diffObject(path string, want, have map[string]any) []string {
	var diffs []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		h, ok := have[k]
		if !ok {
			diffs = append(diffs, fmt.Sprintf("body %s.%s: recorded %s, missing", path, k, show(want[k])))
			continue
		}
		diffs = append(diffs, diffValue(path+"."+k, want[k], h)...)
	}
	for _, k := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[k]; !ok {
			diffs = append(diffs, fmt.Sprintf("body %s.%s: not recorded, got %s", path, k, show(have[k])))
		}
	}
	return diffs
}

func diffArray(path string, want, have []any) []string {
	var diffs []string
	if len(want) != len(have) {
		diffs = append(diffs, fmt.Sprintf("body %s: recorded %d items, got %d", path, len(want), len(have)))
	}
	for i := range min(len(want), len(have)) {
		diffs = append(diffs, diffValue(fmt.Sprintf("%s[%d]", path, i), want[i], have[i])...)
	}
	return diffs
}
