package e2e

import (
	"fmt"
	"strings"
	"testing"

	"portico/proxy"
)

// interface.md section 3.7.

func TestInterface_UpdateAttachment_AllOfIDs(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		got := h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1,5,"13"],"summary":"one for three"}`).ok(t, 200)
		for i, id := range []string{"1", "5", "13"} {
			is(t, got.at(t, "attachments", i, "id"), id)
			is(t, walk(t, h.attachment(t, "", id), "summary"), `"one for three"`)
		}
	})
}

func TestInterface_UpdateAttachment_ThePathNamesOneOfIDs(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.put(t, "dev", "/rest/bug/attachment/1", `{"summary":"the path is enough"}`).ok(t, 200)
	is(t, walk(t, h.attachment(t, "", 1), "summary"), `"the path is enough"`)
	h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[5,13],"summary":"a contradiction"}`).refused(t, 400, 53)
	for _, id := range []string{"1", "5", "13"} {
		if walk(t, h.attachment(t, "", id), "summary") == "a contradiction" {
			t.Errorf("attachment %s was changed", id)
		}
	}
}

func TestInterface_UpdateAttachment_IDsAreAttachmentIDs(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for ids, code := range map[string]int{`["one"]`: 52, `[[1]]`: 58, `{"1":1}`: 58} {
		h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":`+ids+`,"summary":"s"}`).refused(t, 400, code)
	}
	h.put(t, "dev", "/rest/bug/attachment/first", `{"summary":"s"}`).refused(t, 400, 52)
	h.put(t, "dev", "/rest/bug/attachment/99999", `{"ids":[99999],"summary":"s"}`).fails(t, 400, 32000)
	if done := h.writes(); len(done) != 0 {
		t.Errorf("the tracker executed %v", done)
	}
}

// settable demands that an update can set a text, that the record says so, and that what is not sent stays.
func settable(t *testing.T, field, old, value string) {
	t.Helper()
	bothWays(t, func(t *testing.T, h *environment) {
		is(t, h.edit(t, 4, fmt.Sprintf(`{"ids":[4],%q:%q}`, field, value)), fmt.Sprintf(`{%q:{"removed":%q,"added":%q}}`, field, old, value))
		h.edit(t, 4, `{"ids":[4],"is_obsolete":true}`)
		is(t, walk(t, h.attachment(t, "", 4), field), fmt.Sprintf("%q", value))
	})
}

func TestInterface_UpdateAttachment_FileName(t *testing.T) {
	settable(t, "file_name", "blob.bin", "new-name.bin")
}

func TestInterface_UpdateAttachment_Summary(t *testing.T) {
	settable(t, "summary", "binary 1 MB", "new summary")
}

func TestInterface_UpdateAttachment_ContentType(t *testing.T) {
	settable(t, "content_type", "application/octet-stream", "image/png")
	h := open(t, plan{})
	h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1],"content_type":"no type"}`).refused(t, 400, 601)
}

func TestInterface_UpdateAttachment_CommentIsAddedToTheBug(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.edit(t, 13, `{"ids":[13],"comment":"said on the way"}`)
	if said := h.comments(t, "10"); !strings.Contains(said, "said on the way") {
		t.Errorf("bug 10 has no such comment: %s", said)
	}
}

func TestInterface_UpdateAttachment_IsPatchForcesTextPlain(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, form := range []string{`true`, `1`, `"1"`} {
			h.edit(t, 4, `{"ids":[4],"is_patch":0,"content_type":"image/png"}`)
			h.edit(t, 4, `{"ids":[4],"is_patch":`+form+`}`)
			one := h.attachment(t, "", 4)
			is(t, walk(t, one, "is_patch"), `1`)
			is(t, walk(t, one, "content_type"), `"text/plain"`)
		}
		h.edit(t, 1, `{"ids":[1],"is_patch":true,"content_type":"image/png"}`)
		is(t, walk(t, h.attachment(t, "", 1), "content_type"), `"text/plain"`)
	})
}

func TestInterface_UpdateAttachment_IsPatchTakesZeroAsTheSampleSendsIt(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	is(t, h.edit(t, 3, `{"ids":[3],"is_patch":0}`), `{"is_patch":{"removed":"1","added":"0"}}`)
	is(t, h.edit(t, 1, `{"ids":[1],"is_patch":0}`), `{}`)
}

func TestInterface_UpdateAttachment_IsPrivateRestrictsToInsiders(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.put(t, "insider", "/rest/bug/attachment/1", `{"ids":[1],"is_private":true}`).ok(t, 200)
	h.get(t, "dev", "/rest/bug/attachment/1").fails(t, 401, 304)
	h.put(t, "insider", "/rest/bug/attachment/1", `{"ids":[1],"is_private":"false"}`).ok(t, 200)
	h.attachment(t, "dev", 1)
}

func TestInterface_UpdateAttachment_IsObsolete(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	is(t, h.edit(t, 1, `{"ids":[1],"is_obsolete":true,"flags":[]}`),
		`{"is_obsolete":{"removed":"0","added":"1"},"flagtypes.name":{"removed":"single?","added":""}}`)
	is(t, walk(t, h.attachment(t, "", 1), "is_obsolete"), `1`)
	is(t, h.edit(t, 1, `{"ids":[1],"is_obsolete":false}`), `{"is_obsolete":{"removed":"1","added":"0"}}`)
}

func TestInterface_UpdateAttachment_Flags(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.edit(t, 5, `{"ids":[5],"flags":[{"name":"review","status":"?"},{"type_id":9,"status":"+"}]}`)
	h.holds(t, 5, "review?", "single+")
	for _, flags := range []string{`"review?"`, `{"name":"review","status":"?"}`, `[1]`} {
		h.put(t, "dev", "/rest/bug/attachment/5", `{"ids":[5],"flags":`+flags+`}`).refused(t, 400, 53)
	}
}

func TestInterface_UpdateAttachment_RespondsWithChangeObjects(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	got := h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1,5],"summary":"s"}`).ok(t, 200)
	list, _ := got.at(t, "attachments").([]any)
	if len(list) != 2 {
		t.Fatalf("got %s", got.body)
	}
	for i, id := range []string{"1", "5"} {
		is(t, walk(t, list[i], "id"), id)
		wantTime(t, walk(t, list[i], "last_change_time"))
		walk(t, list[i], "changes", "summary", "added")
	}
}

func TestInterface_UpdateAttachment_LastChangeTimeIsThatOfThisUpdate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	got := h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1],"summary":"s"}`).ok(t, 200)
	moved := text(t, got.at(t, "attachments", 0, "last_change_time"))
	if moved == "2020-01-02T03:04:05Z" {
		t.Error("the time did not move although the summary changed")
	}
	is(t, walk(t, h.attachment(t, "", 1), "last_change_time"), fmt.Sprintf("%q", moved))
}

func TestInterface_UpdateAttachment_LastChangeTimeStaysWhereNothingChanged(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	got := h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1],"summary":"public text"}`).ok(t, 200)
	is(t, got.at(t, "attachments", 0), `{"id":1,"last_change_time":"2020-01-02T03:04:05Z","changes":{}}`)
}

func TestInterface_UpdateAttachment_ChangesNameFieldsThatChanged(t *testing.T) {
	t.Parallel()
	for _, form := range []proxy.Responses{proxy.ResponsesTracker, proxy.ResponsesInterface} {
		h := open(t, plan{responses: form})
		got := h.put(t, "insider", "/rest/bug/attachment/5",
			`{"ids":[5],"file_name":"y","summary":"one byte","content_type":"image/png","is_private":1,"is_obsolete":1,"is_patch":0}`).ok(t, 200)
		is(t, got.at(t, "attachments", 0, "changes"), `{"file_name":{"removed":"x","added":"y"},
			"content_type":{"removed":"text/plain","added":"image/png"},
			"is_private":{"removed":"0","added":"1"},"is_obsolete":{"removed":"0","added":"1"}}`)
	}
}

func TestInterface_UpdateAttachment_SeveralAddedValuesAreJoined(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	is(t, h.edit(t, 5, `{"ids":[5],"flags":[{"name":"review","status":"?","requestee":"plain@example.com"},{"name":"single","status":"+"}]}`),
		`{"flagtypes.name":{"removed":"","added":"review?(plain@example.com), single+"}}`)
}

func TestInterface_UpdateAttachment_BooleansInChangesAreOneAndZero(t *testing.T) {
	t.Parallel()
	for _, form := range []proxy.Responses{proxy.ResponsesTracker, proxy.ResponsesInterface} {
		h := open(t, plan{responses: form})
		is(t, h.edit(t, 3, `{"ids":[3],"is_patch":false,"is_obsolete":false}`),
			`{"is_patch":{"removed":"1","added":"0"},"is_obsolete":{"removed":"1","added":"0"}}`)
	}
}
