package e2e

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// interface.md section 3.4.

func TestInterface_GetAttachments_OfABugByItsID(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		list, _ := h.get(t, "", "/rest/bug/10/attachment").ok(t, 200).at(t, "bugs", "10").([]any)
		if len(list) != 2 {
			t.Fatalf("bug 10 has %d attachments, want 2", len(list))
		}
		is(t, walk(t, list[0], "id"), `13`)
		is(t, walk(t, list[1], "id"), `14`)
	})
}

func TestInterface_GetAttachments_ABugThatIsNoneIsAnError(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.get(t, "", "/rest/bug/99999/attachment").fails(t, 404, 101)
		h.get(t, "", "/rest/bug/no-such-alias/attachment").fails(t, 400, 100)
	})
}

func TestInterface_GetAttachment_ByItsID(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		is(t, walk(t, h.attachment(t, "", 13), "summary"), `"ten 1"`)
		h.get(t, "", "/rest/bug/attachment/thirteen").refused(t, 400, 52)
	})
}

func TestInterface_GetAttachments_ResponseHasTwoKeys(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, path := range []string{"/rest/bug/5/attachment", "/rest/bug/2/attachment", "/rest/bug/attachment/11", "/rest/bug/attachment/99999"} {
			object, _ := h.get(t, "", path).ok(t, 200).tree(t).(map[string]any)
			for _, key := range []string{"bugs", "attachments"} {
				if _, ok := object[key].(map[string]any); !ok || len(object) != 2 {
					t.Errorf("%s: %s is no object, or there are more keys than two: %v", path, key, object)
				}
			}
		}
	})
}

func TestInterface_GetAttachments_BugsIsFilledForTheBugOfThePath(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		got := h.get(t, "", "/rest/bug/5/attachment").ok(t, 200)
		is(t, got.at(t, "bugs", "5", 0, "id"), `11`)
		is(t, got.at(t, "attachments"), `{}`)
		is(t, h.get(t, "", "/rest/bug/2/attachment").ok(t, 200).tree(t), `{"bugs":{"2":[]},"attachments":{}}`)
	})
}

func TestInterface_GetAttachments_KeysOfBugsAreIntegerIDs(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		bugs, _ := h.get(t, "", "/rest/bug/alias-one/attachment?include_fields=id").ok(t, 200).at(t, "bugs").(map[string]any)
		for key := range bugs {
			if id, err := strconv.Atoi(key); err != nil || id != 1 {
				t.Errorf("the key %q is not the id 1", key)
			}
		}
		if len(bugs) != 1 {
			t.Errorf("there are %d bugs, want one", len(bugs))
		}
	})
}

func TestInterface_GetAttachment_AttachmentsIsFilledForTheIDOfThePath(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		got := h.get(t, "", "/rest/bug/attachment/11").ok(t, 200)
		is(t, got.at(t, "attachments", "11", "id"), `11`)
		is(t, got.at(t, "bugs"), `{}`)
		for _, field := range []string{
			"id", "bug_id", "data", "size", "creation_time", "last_change_time", "file_name", "summary", "content_type",
			"is_private", "is_obsolete", "is_patch", "creator", "flags",
		} {
			got.at(t, "attachments", "11", field)
		}
	})
}

// listed gives the ids of the attachments of a bug that a user sees.
func (h *environment) listed(t testing.TB, user, bug string) []int {
	t.Helper()
	list, _ := h.get(t, user, "/rest/bug/"+bug+"/attachment?include_fields=id").ok(t, 200).at(t, "bugs", bug).([]any)
	ids := []int{}
	for _, one := range list {
		ids = append(ids, integer(t, walk(t, one, "id")))
	}
	return ids
}

func TestInterface_GetAttachments_PrivateOnesForTheGroupOrTheSubmitter(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, want := range []struct {
			user string
			ids  []int
		}{
			{"insider", []int{1, 2, 3, 4, 5, 6, 7, 9, 10}}, {"exinsider", []int{1, 3, 4, 5, 6, 7, 9, 10}},
			{"dev", []int{1, 3, 4, 5, 6, 9, 10}}, {"", []int{1, 3, 4, 5, 6, 9, 10}},
		} {
			if got := h.listed(t, want.user, "1"); !slices.Equal(got, want.ids) {
				t.Errorf("%q sees the attachments %v of bug 1, want %v", want.user, got, want.ids)
			}
		}
		for _, user := range []string{"", "dev", "plain"} {
			h.get(t, user, "/rest/bug/attachment/15").fails(t, 401, 304)
		}
		h.attachment(t, "insider", 15)
	})
}

// interface.md section 3.6.

func TestInterface_CreateAttachment_OnAllBugsOfIDs(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		made, _ := h.post(t, "dev", "/rest/bug/7/attachment", upload(`"ids":[7,"alias-eight",2],"content_type":"text/plain","comment":"the same for all"`)).
			ok(t, 201).at(t, "ids").([]any)
		if len(made) != 3 {
			t.Fatalf("%d attachments were made, want 3", len(made))
		}
		for i, bug := range []string{"7", "8", "2"} {
			one := h.attachment(t, "", integer(t, made[i]))
			is(t, walk(t, one, "bug_id"), bug)
			is(t, walk(t, one, "data"), `"c29tZSBjb250ZW50Cg=="`)
			if said := h.comments(t, bug); !strings.Contains(said, "the same for all") {
				t.Errorf("bug %s has no such comment: %s", bug, said)
			}
		}
	})
}

// comments gives all comments of a bug as one text.
func (h *environment) comments(t testing.TB, bug string) string {
	t.Helper()
	return string(h.get(t, "insider", "/rest/bug/"+bug+"/comment").ok(t, 200).body)
}

func TestInterface_CreateAttachment_TheBugOfThePathOverrides(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, ids := range []string{`"ids":[2,8],`, `"ids":[],`, ``} {
		made := h.post(t, "dev", "/rest/bug/7/attachment", upload(ids+`"content_type":"text/plain"`)).ok(t, 201)
		if list, _ := made.at(t, "ids").([]any); len(list) != 1 {
			t.Errorf("with %q there are the attachments %v", ids, list)
		}
		is(t, walk(t, h.attachment(t, "", integer(t, made.at(t, "ids", 0))), "bug_id"), `7`)
	}
	for _, bug := range []string{"2", "8"} {
		if list := h.listed(t, "", bug); len(list) != 0 {
			t.Errorf("bug %s got the attachments %v", bug, list)
		}
	}
}

// lacks demands that a create without one of its fields is refused before the tracker is asked.
func lacks(t testing.TB, field string, code int) {
	t.Helper()
	h := open(t, plan{})
	fields := map[string]string{"data": `"eA=="`, "file_name": `"f"`, "summary": `"s"`, "content_type": `"text/plain"`}
	for _, value := range []string{"", "null"} {
		body := `{"ids":[7]`
		for name, given := range fields {
			if name == field {
				given = value
			}
			if given != "" {
				body += fmt.Sprintf(",%q:%s", name, given)
			}
		}
		h.post(t, "dev", "/rest/bug/7/attachment", body+"}").refused(t, 400, code)
	}
	if asked := h.asked("attachment.create"); asked != 0 {
		t.Errorf("the tracker was asked %d times", asked)
	}
}

func TestInterface_CreateAttachment_DataIsRequired(t *testing.T) {
	t.Parallel()
	lacks(t, "data", 50)
}

func TestInterface_CreateAttachment_DataIsBase64(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	content := make([]byte, 4096)
	for i := range content {
		content[i] = byte(i * 7)
	}
	encoded := base64.StdEncoding.EncodeToString(content)
	made := h.post(t, "dev", "/rest/bug/7/attachment", `{"data":"`+encoded+`","file_name":"f","summary":"s","content_type":"image/png"}`)
	one := h.attachment(t, "", integer(t, made.ok(t, 201).at(t, "ids", 0)))
	is(t, walk(t, one, "data"), `"`+encoded+`"`)
	is(t, walk(t, one, "size"), `4096`)
	for _, wrong := range []string{`"!!!"`, `"eA==="`, `"%%%%"`, `""`} {
		h.post(t, "dev", "/rest/bug/7/attachment", `{"data":`+wrong+`,"file_name":"f","summary":"s","content_type":"image/png"}`).refused(t, 400, 606)
	}
	if asked := h.asked("attachment.create"); asked != 1 {
		t.Errorf("the tracker was asked %d times, want once", asked)
	}
}

func TestInterface_CreateAttachment_FileNameIsRequired(t *testing.T) {
	t.Parallel()
	lacks(t, "file_name", 603)
	h := open(t, plan{})
	is(t, walk(t, h.attachment(t, "", h.attach(t, "dev", "7", `"content_type":"text/plain"`)), "file_name"), `"made.txt"`)
}

func TestInterface_CreateAttachment_SummaryIsRequired(t *testing.T) {
	t.Parallel()
	lacks(t, "summary", 604)
	h := open(t, plan{})
	is(t, walk(t, h.attachment(t, "", h.attach(t, "dev", "7", `"content_type":"text/plain"`)), "summary"), `"made by a test"`)
}

func TestInterface_CreateAttachment_ContentTypeIsRequired(t *testing.T) {
	t.Parallel()
	lacks(t, "content_type", 601)
	h := open(t, plan{})
	is(t, walk(t, h.attachment(t, "", h.attach(t, "dev", "7", `"content_type":"image/png"`)), "content_type"), `"image/png"`)
	h.post(t, "dev", "/rest/bug/7/attachment", upload(`"content_type":"no type at all"`)).refused(t, 400, 601)
}

func TestInterface_CreateAttachment_ContentTypeMayBeOmittedForAPatch(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, patch := range []string{`true`, `1`, `"1"`} {
		one := h.attachment(t, "", h.attach(t, "dev", "7", `"is_patch":`+patch))
		is(t, walk(t, one, "content_type"), `"text/plain"`)
	}
}

func TestInterface_CreateAttachment_CommentIsAdded(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.attach(t, "dev", "7", `"content_type":"text/plain","comment":"see the log"`)
	if said := h.comments(t, "7"); !strings.Contains(said, "see the log") {
		t.Errorf("the comment is not there: %s", said)
	}
	h.attach(t, "dev", "7", `"content_type":"text/plain"`)
}

func TestInterface_CreateAttachment_IsPatchForcesTextPlain(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	h.attach(t, "dev", "7", `"is_patch":true,"content_type":"image/png"`)
	if sent := string(tape.last(t).body); strings.Contains(sent, "image/png") || !strings.Contains(sent, `"content_type":"text/plain"`) {
		t.Errorf("the tracker is asked for %s", sent)
	}
	one := h.attachment(t, "", h.attach(t, "dev", "7", `"is_patch":true,"content_type":"text/x-diff"`))
	is(t, walk(t, one, "is_patch"), `1`)
	is(t, walk(t, one, "content_type"), `"text/plain"`)
	one = h.attachment(t, "", h.attach(t, "dev", "7", `"content_type":"text/x-diff"`))
	is(t, walk(t, one, "is_patch"), `0`)
	is(t, walk(t, one, "content_type"), `"text/x-diff"`)
}

func TestInterface_CreateAttachment_IsPrivateRestrictsToInsiders(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	id := h.attach(t, "insider", "7", `"is_private":true,"content_type":"text/plain"`)
	h.get(t, "dev", fmt.Sprint("/rest/bug/attachment/", id)).fails(t, 401, 304)
	is(t, walk(t, h.attachment(t, "insider", id), "is_private"), `1`)
	is(t, walk(t, h.attachment(t, "", h.attach(t, "dev", "7", `"content_type":"text/plain"`)), "is_private"), `0`)
}

func TestInterface_CreateAttachment_FlagsAreAdded(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.holds(t, h.flagged(t, `[{"name":"review","status":"?","requestee":"plain@example.com"},{"type_id":9,"status":"+"}]`),
		"review?(plain@example.com)", "single+")
	h.holds(t, h.flagged(t, `[]`))
}

func TestInterface_CreateAttachment_ObsoletesMayBeAnEmptyArray(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.attach(t, "dev", "7", `"content_type":"text/plain","obsoletes":[]`)
}

func TestInterface_CreateAttachment_RespondsWithIDs(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	made := h.post(t, "dev", "/rest/bug/7/attachment", upload(`"ids":[7,8],"content_type":"text/plain"`)).ok(t, 201)
	list, _ := made.at(t, "ids").([]any)
	if len(list) != 2 {
		t.Fatalf("got %s", made.body)
	}
	for _, id := range list {
		h.attachment(t, "", integer(t, id))
	}
}
