package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"portico/test/tracker"
)

const (
	adminKey  = "api_key=AdminKey00000000000000000000000000000000"
	secretKey = "api_key=SecretKey0000000000000000000000000000000"
)

// TestSetterOfARequest: who changes only the requestee of a pending flag does not become its setter (tracker-behaviour.md section 8).
func TestSetterOfARequest(t *testing.T) {
	f := start(t, tracker.Options{})
	f.must("PUT", "/rest/bug/attachment/6?"+insiderKey, `{"flags":[{"id":1,"status":"?","requestee":"insider@example.com"}]}`)
	a := f.must("GET", "/rest/bug/attachment/6?include_fields=flags", "")
	a.want(t, "insider@example.com", "attachments", "6", "flags", 2, "requestee")
	a.want(t, "dev@example.com", "attachments", "6", "flags", 2, "setter")
	f.must("PUT", "/rest/bug/attachment/6?"+insiderKey, `{"flags":[{"id":1,"status":"+"}]}`)
	f.must("GET", "/rest/bug/attachment/6?include_fields=flags", "").want(t, "insider@example.com", "attachments", "6", "flags", 2, "setter")
}

// TestFlagsGoToAnotherType: when a type leaves a place, its flags go to an active type of the same name that is valid there, or away.
func TestFlagsGoToAnotherType(t *testing.T) {
	for _, c := range []struct {
		active bool
		want   string
	}{{true, "4"}, {false, "none"}} {
		f := start(t, tracker.Options{})
		f.must("PUT", "/rest/flag_type/4?"+editorKey, fmt.Sprintf(`{"is_active":%v}`, c.active))
		f.must("PUT", "/rest/flag_type/3?"+editorKey, `{"inclusions":["4242"]}`)
		got := "none"
		flags := f.must("GET", "/rest/bug/attachment/6?include_fields=flags", "").at(t, "attachments", "6", "flags").([]any)
		for _, v := range flags {
			if o := v.(map[string]any); o["name"] == "dupname" {
				got = fmt.Sprint(o["type_id"])
			}
		}
		if got != c.want {
			t.Errorf("active %v: the flag is of type %s, want %s", c.active, got, c.want)
		}
	}
}

// TestTimeOfTheLastChange: the same attachment twice in one request keeps the time of the change that was made.
func TestTimeOfTheLastChange(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	f := start(t, tracker.Options{Now: func() time.Time { return now }})
	f.must("PUT", "/rest/bug/attachment/12?"+devKey, `{"ids":[12,12],"summary":"x"}`)
	f.must("GET", "/rest/bug/attachment/12", "").want(t, "2030-01-01T00:00:00Z", "attachments", "12", "last_change_time")
}

// TestQuirksLeaveWritesAlone: the rows of an update stay in the order of ids.
func TestQuirksLeaveWritesAlone(t *testing.T) {
	f := start(t, tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkReordered}})
	f.must("PUT", "/rest/bug/attachment/12?"+devKey, `{"ids":[12,5],"summary":"x"}`).want(t, "12", "attachments", 0, "id")
}

// TestMovedBugIsRestricted: moving into a restricted product takes the bug out of sight, and back again into it.
func TestMovedBugIsRestricted(t *testing.T) {
	f := start(t, tracker.Options{})
	move := func(product, component string) answer {
		return f.must("PUT", "/rest/bug/8?"+secretKey, fmt.Sprintf(`{"product":%q,"component":%q}`, product, component))
	}
	move("SecretProduct", "Secret Comp").want(t, "secretgroup", "bugs", 0, "changes", "groups", "added")
	f.must("GET", "/rest/bug/8/attachment", "").fails(t, 401, "102")
	move("TestProduct", "Comp B").want(t, "secretgroup", "bugs", 0, "changes", "groups", "removed")
	f.must("GET", "/rest/bug/8", "").want(t, "Comp B", "bugs", 0, "component")
	f.must("PUT", "/rest/bug/8?"+secretKey, `{"product":"4242"}`).fails(t, 400, "50")
	f.must("PUT", "/rest/bug/8?api_key=PlainKey00000000000000000000000000000000", `{"summary":"x"}`).fails(t, 401, "115")
}

// TestRolledBackWritesLeaveGaps: ids taken by a refused write are not given out again (recorded: the ids after flag errors).
func TestRolledBackWritesLeaveGaps(t *testing.T) {
	f := start(t, tracker.Options{})
	f.must("POST", create, `{"data":"YQ==","file_name":"f","summary":"s","content_type":"text/plain","flags":[{"name":"nope","status":"?"}]}`).fails(t, 404, "51")
	f.must("POST", create, `{"data":"","file_name":"f","summary":"s","content_type":"text/plain"}`).fails(t, 400, "606")
	f.must("POST", create, patch).want(t, "17", "ids", 0)
	f.must("GET", "/rest/bug/attachment/16", "").want(t, nil, "attachments", "16")
	f.must("GET", "/rest/bug/7/comment", "").want(t, "17", "bugs", "7", "comments", 1, "attachment_id")
}

// TestManyIDsAreAllOrNone, across operations.
func TestManyIDsAreAllOrNone(t *testing.T) {
	f := start(t, tracker.Options{})
	f.must("POST", create, `{"ids":[7,4],"data":"YQ==","file_name":"f","summary":"s","content_type":"text/plain"}`).fails(t, 401, "102")
	f.must("PUT", "/rest/flag_type/1?"+editorKey, `{"ids":[1,99999],"sortkey":3}`).fails(t, 404, "51")
	f.must("PUT", "/rest/flag_type/1?"+editorKey, `{"sortkey":3}`).want(t, "10", "flagtypes", 0, "changes", "sortkey", "removed")
	if n := len(f.Journal()); n != 1 {
		t.Errorf("%d entries in the journal, want 1", n)
	}
}

// TestAdministratorsInheritGroups: the administrator sees secret products, private attachments and all values.
func TestAdministratorsInheritGroups(t *testing.T) {
	f := start(t, tracker.Options{})
	f.must("GET", "/rest/flag_type/SecretProduct?"+adminKey, "").want(t, "+", "attachment", 0, "values", 2)
	f.must("GET", "/rest/bug/attachment/2?"+adminKey, "").want(t, "1", "attachments", "2", "is_private")
}

// TestJSONP: the name is checked, and the tag is that of the other type.
func TestJSONP(t *testing.T) {
	f := start(t, tracker.Options{})
	a := f.must("GET", "/rest/version?callback=a.b[0]", "", "Accept: text/html")
	if a.raw != `/**/a.b[0]({"version":"5.2+"})` || a.header.Get("Content-Type") != "text/javascript; charset=UTF-8" {
		t.Errorf("%s %v", a.raw, a.header)
	}
	f.must("GET", "/rest/version?callback=alert(1)", "").fails(t, 400, "32611")
	if plain := f.must("GET", "/rest/version", ""); plain.header.Get("Etag") == a.header.Get("Etag") {
		t.Error("both types have the same tag")
	}
	if again := f.must("GET", "/rest/version?callback=a.b[0]", "", "If-None-Match: "+a.header.Get("Etag")); again.status != 304 || again.raw != "" {
		t.Errorf("%d %s", again.status, again.raw)
	}
}
