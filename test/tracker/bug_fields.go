package tracker

import (
	"cmp"
	"slices"
	"strings"
)

// Codes of failures of bug fields alone.
const (
	codeMissingResolution = 121
	codeNoResolution      = 122
)

// statuses are the statuses of bugs; those from firstClosed on are closed.
func statuses() []string {
	return []string{"UNCONFIRMED", "CONFIRMED", "IN_PROGRESS", "RESOLVED", "VERIFIED"}
}

const firstClosed = 3

func (b *bug) open() bool { return slices.Index(statuses(), b.status) < firstClosed }

// fields are the fields of plain text, by their names in requests and responses.
func (b *bug) fields() map[string]*string {
	return map[string]*string{
		"version": &b.version, "summary": &b.summary, "status": &b.status, "resolution": &b.resolution, "priority": &b.priority,
		"severity": &b.severity, "platform": &b.platform, "op_sys": &b.opSys, "url": &b.url, "whiteboard": &b.whiteboard,
		"target_milestone": &b.milestone,
	}
}

// setDefaults gives fields that a new bug need not have their values.
func (b *bug) setDefaults() {
	b.version, b.status = cmp.Or(b.version, "unspecified"), cmp.Or(b.status, "CONFIRMED")
	b.priority, b.severity, b.platform, b.opSys, b.milestone = "---", "normal", "All", "All", "---"
	if !b.open() {
		b.resolution = "FIXED"
	}
}

// plain changes the fields that are plain text. A bug has a resolution if it is closed, and only then.
func (x *bugChange) plain() error {
	b, params := x.b, x.c.params
	old := *b
	if v := params["dupe_of"]; v != nil {
		other, err := x.c.bug(v)
		if err != nil {
			return err
		}
		b.dupeOf, b.status, b.resolution = other.id, "RESOLVED", "DUPLICATE"
	}
	for name, into := range b.fields() {
		if v := params[name]; v != nil {
			*into = trim(text(v))
		}
	}
	switch {
	case !slices.Contains(statuses(), b.status):
		return errNoObject("status", "name", b.status)
	case b.open() && truth(params["resolution"]):
		return fail(codeNoResolution, "an open bug has no resolution")
	case b.open():
		b.dupeOf, b.resolution = nil, ""
	case b.resolution == "":
		return fail(codeMissingResolution, "a closed bug needs a resolution")
	}
	for name, was := range old.fields() {
		x.put(name, *was, *b.fields()[name])
	}
	return nil
}

// flags sets flags of the bug.
func (x *bugChange) flags() error {
	removed, added, err := x.c.newSheet(x.b, nil).edit(x.c.params["flags"])
	x.put("flagtypes.name", removed, added)
	return err
}

// searchField gives the field of bugs that a search parameter is about, which may have the name of the search form.
func searchField(name string) string {
	return cmp.Or(map[string]string{
		"bug_id": "id", "bug_status": "status", "bug_severity": "severity", "rep_platform": "platform", "short_desc": "summary",
		"quicksearch": "summary", "reporter": "creator", "bug_file_loc": "url", "status_whiteboard": "whiteboard",
	}[name], name)
}

// found tells whether a bug has what the parameters ask of its fields. Parameters that name no field are ignored.
func (c *call) found(b *bug, shown object) bool {
	for name, v := range c.params {
		name = searchField(name)
		if name == "field0-0-0" { // one line of the form for any field
			name, v = searchField(text(v)), c.params["value0-0-0"]
		}
		have, ok := shown[name]
		if name == "flagtypes.name" {
			have, ok = texts(c.tx.summaries(b.flags)), true
		}
		if ok && !matchesField(name, words(have, false), words(v, name == "id")) {
			return false
		}
	}
	return true
}

// matchesField compares the values of a field with those asked for: all words must be in a long text, one in an address or a flag, and any
// other field must be equal to one.
func matchesField(name string, have, asked []string) bool {
	contains := func(word string) bool {
		return strings.Contains(strings.ToLower(strings.Join(have, " ")), strings.ToLower(word))
	}
	switch name {
	case "summary", "url", "whiteboard":
		all := strings.Fields(strings.Join(asked, " "))
		return !slices.ContainsFunc(all, func(word string) bool { return !contains(word) })
	case "creator", "assigned_to", "cc", "flagtypes.name":
		return slices.ContainsFunc(asked, contains)
	}
	return slices.ContainsFunc(asked, func(v string) bool {
		return slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, v) })
	})
}
