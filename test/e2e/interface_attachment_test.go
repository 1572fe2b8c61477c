package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"portico/proxy"
)

// interface.md section 1.5.

// eachAttachment calls visit for the attachments of bug 1 as an insider sees them, by bug and one by its id.
func eachAttachment(t *testing.T, visit func(t *testing.T, one any)) {
	t.Helper()
	bothWays(t, func(t *testing.T, h *environment) {
		list, _ := h.get(t, "insider", "/rest/bug/1/attachment?exclude_fields=data").ok(t, 200).at(t, "bugs", "1").([]any)
		if len(list) < 8 {
			t.Fatalf("bug 1 has %d attachments", len(list))
		}
		for _, one := range append(list, h.attachment(t, "insider", 6)) {
			visit(t, one)
		}
	})
}

func TestInterface_Attachment_IDIsAnInteger(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) { integer(t, walk(t, one, "id")) })
}

func TestInterface_Attachment_BugIDIsTheBugItBelongsTo(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) { is(t, walk(t, one, "bug_id"), `1`) })
	is(t, walk(t, open(t, plan{}).attachment(t, "", 11), "bug_id"), `5`)
}

func TestInterface_Attachment_DataIsTheContentInBase64(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for id, want := range map[int]string{1: "hello public\n", 5: "x", 9: "\xff\x00\xfe\x80"} {
			content, err := base64.StdEncoding.DecodeString(text(t, walk(t, h.attachment(t, "", id), "data")))
			if err != nil || string(content) != want {
				t.Errorf("attachment %d holds %q (%v), want %q", id, content, err, want)
			}
		}
	})
}

func TestInterface_Attachment_SizeIsTheLengthOfTheContent(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for id, want := range map[int]int{1: 13, 5: 1, 9: 4, 4: 1_000_000} {
			if size := integer(t, walk(t, h.attachment(t, "", id), "size")); size != want {
				t.Errorf("attachment %d has the size %d, want %d", id, size, want)
			}
		}
	})
}

func wantTime(t testing.TB, value any) {
	t.Helper()
	if !regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`).MatchString(text(t, value)) {
		t.Errorf("%v is no time of the shape YYYY-MM-DDThh:mm:ssZ", value)
	}
}

func TestInterface_Attachment_CreationTimeIsATime(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) {
		wantTime(t, walk(t, one, "creation_time"))
		is(t, walk(t, one, "creation_time"), `"2020-01-02T03:04:05Z"`)
	})
}

func TestInterface_Attachment_LastChangeTimeIsATimeInUTC(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) { wantTime(t, walk(t, one, "last_change_time")) })
	h := open(t, plan{})
	h.edit(t, 1, `{"ids":[1],"summary":"moves the time"}`)
	moved := walk(t, h.attachment(t, "", 1), "last_change_time")
	wantTime(t, moved)
	at, err := time.Parse(time.RFC3339, text(t, moved))
	if err != nil || time.Since(at) > time.Minute || time.Since(at) < -time.Minute {
		t.Errorf("%v (%v) is not now in UTC", moved, err)
	}
}

func TestInterface_Attachment_FileNameIsAString(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) { text(t, walk(t, one, "file_name")) })
	is(t, walk(t, open(t, plan{}).attachment(t, "", 9), "file_name"), `"snöwman ☃.txt"`)
}

func TestInterface_Attachment_SummaryIsAString(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) { text(t, walk(t, one, "summary")) })
	is(t, walk(t, open(t, plan{}).attachment(t, "", 9), "summary"), `"résumé ☃"`)
}

func TestInterface_Attachment_ContentTypeIsAMIMEType(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) {
		if kind := text(t, walk(t, one, "content_type")); !regexp.MustCompile(`^\w+/[\w.-]+`).MatchString(kind) {
			t.Errorf("%q is no MIME type", kind)
		}
	})
	is(t, walk(t, open(t, plan{}).attachment(t, "", 4), "content_type"), `"application/octet-stream"`)
}

// testAttachmentSwitch demands that a boolean says what it stands for: as 0 and 1 by default, since clients lean on that
// (docs/reference/clients.md duty 16), as false and true where responses are those of the interface.
func testAttachmentSwitch(t *testing.T, field string, on, off int) {
	t.Helper()
	for form, want := range map[proxy.Responses][2]string{proxy.ResponsesTracker: {"0", "1"}, proxy.ResponsesInterface: {"false", "true"}} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cached %v", form, cached), func(t *testing.T) {
				t.Parallel()
				h := open(t, plan{responses: form, cached: cached})
				is(t, walk(t, h.attachment(t, "insider", on), field), want[1])
				is(t, walk(t, h.attachment(t, "insider", off), field), want[0])
				is(t, h.get(t, "insider", "/rest/bug/1/attachment?include_fields="+field+"&attachment_ids="+fmt.Sprint(on)).
					ok(t, 200).at(t, "attachments", fmt.Sprint(on), field), want[1])
			})
		}
	}
}

func TestInterface_Attachment_IsPrivateMeansVisibleToInsiders(t *testing.T) {
	testAttachmentSwitch(t, "is_private", 2, 1)
	h := open(t, plan{})
	h.get(t, "", "/rest/bug/attachment/2").fails(t, 401, 304)
	h.get(t, "dev", "/rest/bug/attachment/2").fails(t, 401, 304)
	h.attachment(t, "insider", 2)
}

func TestInterface_Attachment_IsObsolete(t *testing.T) { testAttachmentSwitch(t, "is_obsolete", 3, 1) }

func TestInterface_Attachment_IsPatch(t *testing.T) { testAttachmentSwitch(t, "is_patch", 3, 1) }

func TestInterface_Attachment_CreatorIsALogin(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) { text(t, walk(t, one, "creator")) })
	h := open(t, plan{})
	is(t, walk(t, h.attachment(t, "", 11), "creator"), `"plain@example.com"`)
	is(t, walk(t, h.attachment(t, "", h.attach(t, "nothing", "7", `"content_type":"text/plain"`)), "creator"), `"nothing@example.com"`)
}

func TestInterface_Attachment_FlagsAreThoseThatAreSet(t *testing.T) {
	eachAttachment(t, func(t *testing.T, one any) {
		if _, ok := walk(t, one, "flags").([]any); !ok {
			t.Errorf("flags is no array in %v", one)
		}
	})
	h := open(t, plan{})
	h.holds(t, 5)
	h.holds(t, 6, "granted+", "dupname?", "review?(granter@example.com)", "review?(plain@example.com)", "single+")
}

// interface.md section 1.6.

// flagOf gives the flag with an id of attachment 6.
func flagOf(t testing.TB, h *environment, id string) any {
	t.Helper()
	list, _ := walk(t, h.attachment(t, "", 6), "flags").([]any)
	for _, flag := range list {
		if walk(t, flag, "id") == json.Number(id) {
			return flag
		}
	}
	t.Fatalf("attachment 6 has no flag %s", id)
	return nil
}

// eachFlag calls visit for the flags of attachment 6.
func eachFlag(t *testing.T, visit func(t *testing.T, flag any)) {
	t.Helper()
	bothWays(t, func(t *testing.T, h *environment) {
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			visit(t, flagOf(t, h, id))
		}
	})
}

func TestInterface_Flag_IDIsAnInteger(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) { integer(t, walk(t, flag, "id")) })
}

func TestInterface_Flag_NameIsAString(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) { text(t, walk(t, flag, "name")) })
	is(t, walk(t, flagOf(t, open(t, plan{}), "5"), "name"), `"granted"`)
}

func TestInterface_Flag_TypeIDIsThatOfTheFlagType(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) { integer(t, walk(t, flag, "type_id")) })
	is(t, walk(t, flagOf(t, open(t, plan{}), "5"), "type_id"), `8`)
}

func TestInterface_Flag_CreationDateIsATime(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) { wantTime(t, walk(t, flag, "creation_date")) })
}

func TestInterface_Flag_ModificationDateMoves(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) { wantTime(t, walk(t, flag, "modification_date")) })
	h := open(t, plan{})
	h.edit(t, 6, `{"ids":[6],"flags":[{"id":2,"status":"-"}]}`)
	flag := flagOf(t, h, "2")
	if walk(t, flag, "modification_date") == walk(t, flag, "creation_date") {
		t.Errorf("the flag changed and its modification_date did not move: %v", flag)
	}
}

func TestInterface_Flag_StatusIsTheCurrentOne(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) {
		if status := text(t, walk(t, flag, "status")); status != "?" && status != "+" && status != "-" {
			t.Errorf("%q is no status", status)
		}
	})
	h := open(t, plan{})
	for _, status := range []string{"-", "?", "+"} {
		h.edit(t, 6, fmt.Sprintf(`{"ids":[6],"flags":[{"id":2,"status":%q}]}`, status))
		is(t, walk(t, flagOf(t, h, "2"), "status"), fmt.Sprintf("%q", status))
	}
}

func TestInterface_Flag_SetterIsWhoSetOrChangedItLast(t *testing.T) {
	eachFlag(t, func(t *testing.T, flag any) { text(t, walk(t, flag, "setter")) })
	h := open(t, plan{})
	is(t, walk(t, flagOf(t, h, "2"), "setter"), `"dev@example.com"`)
	h.put(t, "granter", "/rest/bug/attachment/6", `{"ids":[6],"flags":[{"id":2,"status":"-"}]}`).ok(t, 200)
	is(t, walk(t, flagOf(t, h, "2"), "setter"), `"granter@example.com"`)
}

func TestInterface_Flag_RequesteeOnlyWhereOneIsSet(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		is(t, walk(t, flagOf(t, h, "1"), "requestee"), `"granter@example.com"`)
		for _, id := range []string{"2", "3", "5"} {
			if requestee, there := member(flagOf(t, h, id), "requestee"); there {
				t.Errorf("flag %s has the requestee %v", id, requestee)
			}
		}
	})
}
