package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// script runs steps, one a line, and ends at the first that fails:
//
//	USER METHOD PATH [BODY] [-> [!][STATUS] [CODE] | CHECK | CHECK]
//	asked OPERATION NUMBER       so many requests of an operation have reached the tracker
//	executed NUMBER              so many writes were executed by the tracker
//	sent REGEXP, unsent REGEXP   the last request that reached the tracker, as its line, sorted headers, an empty line and the body
//	passes                       that was what the client sent, and the client got the tracker's response, byte for byte
//	reached NUMBER               so many requests have reached the tracker, or been answered by a stand-in for it
//	header NAME: VALUE           a header of all later requests, none where there is no value
//	set NAME PATH|@HEADER|~RE    NAME, written $NAME in later lines, is a value or a header of the last response, or the group of a pattern
//
// USER is one of the fixture, whose key is sent in a header, or - for none. Without an arrow or a status, success is wanted. "!" wants an
// error of Portico's own, ? takes any response, and ?STATUS any of that status. The bodies "upload MEMBERS" and "type NAME MEMBERS" are creates with more members than they need, and
// "call METHOD OBJECT" is one of XML-RPC.
// <<a|b>> repeats a line for each alternative.
type script struct {
	*environment
	// prefix begins every path, header and query are sent with every request.
	prefix string
	header http.Header
	query  string
	names  map[string]string
	last   *reply
}

// steps gives a script for an environment, with names for the keys of users and for 4096 bytes of content.
func steps(h *environment) *script {
	content := make([]byte, 4096)
	for i := range content {
		content[i] = byte(i * 7)
	}
	names := map[string]string{"blob": base64.StdEncoding.EncodeToString(content), "data": data}
	for user, key := range h.keys {
		names["key."+user] = key
	}
	return &script{environment: h, names: names}
}

func (s *script) run(t testing.TB, text string) error {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		for _, step := range alternatives(line) {
			if err := s.step(t, step); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
		}
	}
	return nil
}

// alternatives writes a line out for each of its alternatives.
func alternatives(line string) []string {
	before, rest, found := strings.Cut(line, "<<")
	if !found {
		return []string{line}
	}
	choice, after, _ := strings.Cut(rest, ">>")
	var all []string
	for one := range strings.SplitSeq(choice, "|") {
		all = append(all, alternatives(before+one+after)...)
	}
	return all
}

func (s *script) step(t testing.TB, line string) error {
	t.Helper()
	line = s.substitute(line)
	words := strings.Fields(line)
	switch words[0] {
	case "asked":
		return equal(s.asked(words[1]), words[2])
	case "executed":
		return equal(len(s.writes()), words[1])
	case "reached":
		return equal(len(s.tape.all()), words[1])
	case "passes":
		return s.last.passed(s.tape.last(t))
	case "sent", "unsent":
		if _, re, _ := strings.Cut(line, " "); regexp.MustCompile(re).MatchString(s.tape.last(t).String()) != (words[0] == "sent") {
			return fmt.Errorf("the tracker got %.300s", s.tape.last(t))
		}
		return nil
	case "header":
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "header "), ":")
		if s.header == nil {
			s.header = http.Header{}
		}
		if s.header.Set(name, strings.TrimSpace(value)); s.header.Get(name) == "" {
			s.header.Del(name)
		}
		return nil
	case "set":
		if header, isHeader := strings.CutPrefix(words[2], "@"); isHeader {
			s.names[words[1]] = s.last.header.Get(header)
			return nil
		}
		if re, isPattern := strings.CutPrefix(words[2], "~"); isPattern {
			found := regexp.MustCompile(re).FindSubmatch(s.last.body)
			if found == nil {
				return fmt.Errorf("nothing matches in %.300s", s.last.body)
			}
			s.names[words[1]] = string(found[1])
			return nil
		}
		s.names[words[1]] = s.last.value(t, words[2])
		return nil
	}
	request, want, _ := strings.Cut(line, " ->")
	before := s.last
	s.last = s.client.do(t, s.request(request))
	wants := strings.Split(want, " | ")
	if err := s.last.hasStatus(wants[0]); err != nil {
		return err
	}
	for _, check := range wants[1:] {
		if check == "same" && bytes.Equal(before.body, s.last.body) {
			continue
		}
		if err := s.last.check(t, check); err != nil {
			return fmt.Errorf("%s: %w in %.400s", check, err, s.last.body)
		}
	}
	return nil
}

func (s *script) substitute(line string) string {
	var pairs []string
	for name := range s.names {
		pairs = append(pairs, "$"+name)
	}
	slices.SortFunc(pairs, func(a, b string) int { return len(b) - len(a) }) // the longest name that fits
	for _, name := range pairs {
		line = strings.ReplaceAll(line, name, s.names[name[1:]])
	}
	return line
}

func (s *script) request(text string) ask {
	part := append(strings.SplitN(text, " ", 4), "")
	a := ask{method: part[1], path: s.prefix + part[2], header: http.Header{}, body: part[3]}
	for name, values := range s.header {
		a.header.Set(name, s.substitute(values[0]))
	}
	if part[0] != "-" {
		a.user = part[0]
	}
	if s.query != "" {
		a.path += map[bool]string{true: "&", false: "?"}[strings.Contains(a.path, "?")] + s.substitute(s.query)
	}
	if more, found := strings.CutPrefix(a.body, "call "); found {
		method, object, _ := strings.Cut(more, " ")
		var err error
		if a.body, err = xmlOf(method, object); err != nil {
			a.body = err.Error()
		}
		a.header.Set("Content-Type", "text/xml")
	} else if more, found := strings.CutPrefix(a.body, "upload"); found {
		a.body = upload(strings.TrimSpace(more))
	} else if more, found := strings.CutPrefix(a.body, "type "); found {
		name, more, _ := strings.Cut(more, " ")
		a.body = flagTypeBody(name, more)
	}
	return a
}

// hasStatus checks the status, and the code and the shape of an error.
func (r *reply) hasStatus(want string) error {
	want = strings.TrimSpace(want)
	own := strings.HasPrefix(want, "!")
	words := strings.Fields(strings.TrimPrefix(want, "!"))
	if status, any := strings.CutPrefix(want, "?"); any {
		if status != "" && status != strconv.Itoa(r.status) {
			return fmt.Errorf("status %d: %.300s", r.status, r.body)
		}
		return nil
	}
	if len(words) < 2 {
		status := map[bool]string{true: "201", false: "200"}[r.ask.method == http.MethodPost]
		if len(words) == 1 {
			status = words[0]
		}
		n, _ := strconv.Atoi(status)
		return r.succeeds(n)
	}
	status, _ := strconv.Atoi(words[0])
	code, _ := strconv.Atoi(words[1])
	if own && r.header.Get("Portico-Error") == "" {
		return fmt.Errorf("the header that tells Portico's own errors is missing: %d %.300s", r.status, r.body)
	}
	return r.hasFailed(status, code)
}

// check is PATH OPERATOR VALUE, where PATH leads into the response by names and positions, * for each, and . is all of it:
//
//	PATH  !PATH          there is such a value, or none
//	PATH=JSON            it is this value
//	PATH~REGEXP          its JSON matches; at . the text of the response
//	same                 the response has the body of the one before
//	. lacks TEXT         the text of the response does not hold it
//	PATH is KIND         a kind of value, see kinds
//	PATH sorted JSON     the values in order
//	PATH keys JSON       the sorted names of its members
//	PATH order REGEXP    the list of the values, as JSON, matches
//	PATH unique          no value is there twice
//	@NAME=TEXT, @NAME~RE a header
func (r *reply) check(t testing.TB, text string) error {
	t.Helper()
	found := regexp.MustCompile(`^(.*?)(=|~| is | sorted | keys | order | unique| lacks )(.*)$`).FindStringSubmatch(text)
	if name, absent := strings.CutPrefix(text, "!"); absent {
		if values := lookup(r.tree(t), name); len(values) > 0 {
			return fmt.Errorf("it is %s", asJSON(values[0]))
		}
		return nil
	} else if found == nil {
		found = []string{"", text, "~", ""}
	}
	path, operator, want := found[1], found[2], found[3]
	if name, isHeader := strings.CutPrefix(path, "@"); isHeader {
		if operator == "~" {
			return matches(r.header.Get(name), want)
		}
		return equal(strconv.Quote(r.header.Get(name)), strconv.Quote(want))
	}
	if path == "." && operator == "~" {
		return matches(string(r.body), want)
	}
	if operator == " lacks " {
		return equal(bytes.Contains(r.body, []byte(want)), "false")
	}
	values := lookup(r.tree(t), path)
	if len(values) == 0 {
		return errors.New("there is no such value")
	}
	switch operator {
	case " sorted ":
		slices.SortFunc(values, func(a, b any) int { return strings.Compare(asJSON(a), asJSON(b)) })
		return equal(asJSON(values), want)
	case " order ":
		return matches(asJSON(values), want)
	case " unique":
		seen := map[string]bool{}
		for _, value := range values {
			seen[asJSON(value)] = true
		}
		return equal(len(seen), strconv.Itoa(len(values)))
	}
	for _, value := range values {
		if err := checkOne(value, operator, want); err != nil {
			return err
		}
	}
	return nil
}

func checkOne(value any, operator, want string) error {
	switch operator {
	case "=":
		var tree any
		decoder := json.NewDecoder(strings.NewReader(want))
		decoder.UseNumber()
		if err := decoder.Decode(&tree); err != nil {
			return err
		}
		return equal(asJSON(value), asJSON(tree))
	case " keys ":
		object, _ := value.(map[string]any)
		names := []any{}
		for name := range object {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b any) int { return strings.Compare(asJSON(a), asJSON(b)) })
		return equal(asJSON(names), want)
	case " is ":
		if !kinds(value, want) {
			return fmt.Errorf("%s is no %s", asJSON(value), want)
		}
		return nil
	}
	return matches(asJSON(value), want)
}

var timeForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`)

// kinds tells whether a value is of a kind; an attachment has all of its fields, each of its type.
func kinds(value any, kind string) bool {
	words, isText := value.(string)
	switch kind {
	case "integer":
		number, ok := value.(json.Number)
		_, err := number.Int64()
		return ok && err == nil
	case "text":
		return isText
	case "time":
		return isText && timeForm.MatchString(words)
	case "now":
		at, err := time.Parse(time.RFC3339, words)
		return isText && timeForm.MatchString(words) && err == nil && time.Since(at).Abs() < time.Minute
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "object":
		_, ok := value.(map[string]any)
		return ok
	case "attachment":
		return hasFields(value, "id integer bug_id integer size integer is_private integer is_obsolete integer is_patch integer data text "+
			"file_name text summary text content_type text creator text creation_time time last_change_time time flags array")
	case "flag":
		return hasFields(value, "id integer type_id integer name text status text setter text creation_date time modification_date time")
	}
	return false
}

func hasFields(value any, namesAndKinds string) bool {
	object, _ := value.(map[string]any)
	words := strings.Fields(namesAndKinds)
	for i := 0; i < len(words); i += 2 {
		if field, ok := object[words[i]]; !ok || !kinds(field, words[i+1]) {
			return false
		}
	}
	return true
}

// lookup gives the values at a path. type:NAME is the flag type of that name or id in a list of flag types, flag:ID a flag of a list,
// and shown the flags of an attachment as texts such as "review?(plain@example.com)".
func lookup(value any, path string) []any {
	if path == "." {
		return []any{value}
	}
	values := []any{value}
	for step := range strings.SplitSeq(path, ".") {
		var next []any
		for _, one := range values {
			next = append(next, stepInto(one, step)...)
		}
		values = next
	}
	return values
}

func stepInto(value any, step string) []any {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	if kind, name, ok := strings.Cut(step, ":"); ok {
		if kind == "type" {
			bugs, _ := object["bug"].([]any)
			attachments, _ := object["attachment"].([]any)
			list = slices.Concat(bugs, attachments)
		}
		for _, one := range list {
			if item, _ := one.(map[string]any); item["name"] == name || item["id"] == json.Number(name) {
				return []any{one}
			}
		}
		return nil
	}
	if flags, ok := object["flags"].([]any); ok && step == "shown" {
		shown := []any{}
		for _, flag := range flags {
			one, _ := flag.(map[string]any)
			text := fmt.Sprint(one["name"], one["status"])
			if requestee, ok := one["requestee"]; ok {
				text += fmt.Sprintf("(%s)", requestee)
			}
			shown = append(shown, text)
		}
		return []any{shown}
	}
	if step == "*" {
		for _, one := range object {
			list = append(list, one)
		}
		return list
	}
	if i, err := strconv.Atoi(step); err == nil && list != nil {
		if i < len(list) {
			return []any{list[i]}
		}
		return nil
	}
	if found, ok := object[step]; ok {
		return []any{found}
	}
	return nil
}

// replaceAll replaces texts of which each is followed by what takes its place.
func replaceAll(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func equal(got any, want string) error {
	if text := fmt.Sprint(got); text != want {
		return fmt.Errorf("got %.400s, want %s", text, want)
	}
	return nil
}

func matches(text, re string) error {
	if !regexp.MustCompile(re).MatchString(text) {
		return fmt.Errorf("%.400s does not match", text)
	}
	return nil
}
