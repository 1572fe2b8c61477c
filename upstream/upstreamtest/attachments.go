package upstreamtest

import (
	"slices"
	"strconv"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

func (s Subject) ofBug(t *testing.T, user string, request mapping.AttachmentsRequest) attachments {
	t.Helper()
	reply, err := s.do(t, user, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &request})
	return read[attachments](t, reply.Document, err)
}

func (s Subject) byID(t *testing.T, user, id string) attachments {
	t.Helper()
	reply, err := s.do(t, user, upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{id}}})
	return read[attachments](t, reply.Document, err)
}

func attachmentsOfBug(t *testing.T, s Subject) {
	got := s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"5"}})
	if len(got.Bugs["5"]) != 1 || got.Bugs["5"][0].ID != 11 || got.Attachments == nil {
		t.Errorf("got %+v, want attachment 11 of bug 5 and an empty attachments member", got)
	}
	got = s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"2"}})
	if list, ok := got.Bugs["2"]; !ok || len(list) != 0 {
		t.Errorf("got %+v, want an empty list for bug 2", got)
	}
	got = s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"alias-one"}, Include: []string{"id"}})
	if list, ok := got.Bugs["1"]; !ok || len(list) == 0 || list[0].Summary != "" {
		t.Errorf("got %+v, want the ids of bug 1's attachments only", got)
	}
	got = s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"5", "2"}, Attachments: []string{"1"}})
	if len(got.Bugs) != 2 || len(got.Attachments) != 1 {
		t.Errorf("got %d bugs and %d attachments, want 2 and 1", len(got.Bugs), len(got.Attachments))
	}
}

func attachmentByID(t *testing.T, s Subject) {
	got := s.byID(t, "", "11")
	if one := got.Attachments["11"]; one.BugID != 5 || one.Data != "cGxhaW4ncyBvd24K" || one.Size != 12 {
		t.Errorf("got %+v for attachment 11", one)
	}
	if got := s.byID(t, "", "99999"); len(got.Attachments) != 0 {
		t.Errorf("an unknown id gives %+v, want nothing", got)
	}
	if got := s.byID(t, "", "4"); got.Attachments["4"].Size < 1_000_000 || len(got.Attachments["4"].Data) < 1_300_000 {
		t.Errorf("attachment 4 arrived with size %d and %d bytes of base64", got.Attachments["4"].Size, len(got.Attachments["4"].Data))
	}
}

func privateAttachments(t *testing.T, s Subject) {
	if list := s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"5"}}).Bugs["5"]; len(list) != 1 {
		t.Errorf("anonymous sees %d attachments of bug 5, want 1", len(list))
	}
	if list := s.ofBug(t, "insider", mapping.AttachmentsRequest{Bugs: []string{"5"}}).Bugs["5"]; len(list) != 2 {
		t.Errorf("an insider sees %d attachments of bug 5, want 2", len(list))
	}
	_, err := s.do(t, "", upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{"15"}}})
	wantCode(t, err, 304, 401)
}

func upload(bugs ...string) mapping.AttachmentCreate {
	request := mapping.AttachmentCreate{
		Bugs: bugs, Data: jsonblob.BlobFromRaw([]byte("some content\n")),
		FileName: new("f.txt"), Summary: new("made by the contract"), ContentType: new("text/plain"),
	}
	request.SetDefaults()
	return request
}

func attachmentCreated(t *testing.T, s Subject) {
	request := upload("7", "8")
	request.IsPatch, request.ContentType = new(true), nil
	request.SetDefaults()
	reply, err := s.do(t, "dev", upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &request})
	created := read[struct {
		IDs []int64 `json:"ids"`
	}](t, reply.Document, err)
	if len(created.IDs) != 2 {
		t.Fatalf("created %v, want one attachment per bug", created.IDs)
	}
	for _, bug := range []string{"7", "8"} {
		list := s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{bug}}).Bugs[bug]
		last := list[len(list)-1]
		if last.Data != "c29tZSBjb250ZW50Cg==" || last.ContentType != "text/plain" || last.IsPatch != 1 {
			t.Errorf("bug %s holds %+v", bug, last)
		}
	}
}

func attachmentCreateAllOrNothing(t *testing.T, s Subject) {
	before := len(s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"7"}}).Bugs["7"])
	_, err := s.do(t, "dev", upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: new(upload("7", "99999"))})
	wantCode(t, err, 101, 404)
	if after := len(s.ofBug(t, "", mapping.AttachmentsRequest{Bugs: []string{"7"}}).Bugs["7"]); after != before {
		t.Errorf("bug 7 has %d attachments after a failed create, had %d", after, before)
	}
	_, err = s.do(t, "", upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: new(upload("7"))})
	wantCode(t, err, 410, 401)
}

// attachmentCreatedUnderNames: bug 8 has the aliases alias-eight and other.alias. No bug may be left out because its
// name is written otherwise in the path, none may get the attachment that was not asked for, and twice only who is named twice.
func attachmentCreatedUnderNames(t *testing.T, s Subject) {
	for _, c := range []struct {
		path string
		ids  []string
		want []int64
		code int
	}{
		{"8", []string{"alias-eight", "7"}, []int64{8, 7}, 0},
		{"alias-eight", []string{"8", "7"}, []int64{8, 7}, 0},
		{"other.alias", []string{"alias-eight", "7"}, []int64{8, 7}, 0},
		{"other.alias", []string{"7", "alias-one", "ALIAS-EIGHT"}, []int64{7, 1, 8}, 0},
		{"7", []string{"alias-eight"}, []int64{7}, 0},
		{"alias-one", []string{"8", "7"}, []int64{1}, 0},
		{"8", []string{"no-such-alias", "7"}, nil, 100},
		{"no-such-alias", []string{"7"}, nil, 100},
		{"8", []string{"secret-alias", "7"}, nil, 102},
	} {
		request := upload(c.ids...)
		request.PathBug = c.path
		reply, err := s.do(t, "dev", upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &request})
		if c.code != 0 {
			wantCode(t, err, c.code, mapping.StatusOf(c.code))
			continue
		}
		created := read[struct {
			IDs []int64 `json:"ids"`
		}](t, reply.Document, err)
		var got []int64
		for _, id := range created.IDs {
			text := strconv.FormatInt(id, 10)
			got = append(got, s.byID(t, "", text).Attachments[text].BugID)
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(c.want))) {
			t.Errorf("path %s with %q attaches to %v, want %v", c.path, c.ids, got, c.want)
		}
	}
}

type attachmentChange struct {
	ID             int64  `json:"id"`
	LastChangeTime string `json:"last_change_time"`
	Changes        map[string]struct {
		Added   string `json:"added"`
		Removed string `json:"removed"`
	} `json:"changes"`
}

func (s Subject) updateAttachments(t *testing.T, user string, request mapping.AttachmentUpdate) []attachmentChange {
	t.Helper()
	request.SetDefaults()
	reply, err := s.do(t, user, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &request})
	return read[struct {
		Attachments []attachmentChange `json:"attachments"`
	}](t, reply.Document, err).Attachments
}

func attachmentsUpdated(t *testing.T, s Subject) {
	changes := s.updateAttachments(t, "dev", mapping.AttachmentUpdate{
		IDs: []int64{1, 5}, Summary: new("a new summary"), IsObsolete: new(true),
	})
	if len(changes) != 2 || changes[0].ID != 1 || changes[1].ID != 5 {
		t.Fatalf("got %+v, want the changes of 1 and 5", changes)
	}
	for _, change := range changes {
		if change.Changes["summary"].Added != "a new summary" || change.Changes["is_obsolete"].Added != "1" {
			t.Errorf("attachment %d reports %+v", change.ID, change.Changes)
		}
	}
	s.updateAttachments(t, "dev", mapping.AttachmentUpdate{IDs: []int64{1}, ContentType: new("text/html")})
	s.updateAttachments(t, "dev", mapping.AttachmentUpdate{IDs: []int64{1}, IsPatch: new(true)})
	if one := s.byID(t, "", "1").Attachments["1"]; one.IsPatch != 1 || one.ContentType != "text/plain" {
		t.Errorf("a patch has content type %q", one.ContentType)
	}
	_, err := s.do(t, "dev", upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{99999}, Summary: new("x")}})
	wantCode(t, err, 32000, 400)
}

func attachmentFlags(t *testing.T, s Subject) {
	flags := func(flag mapping.FlagChange) []attachmentChange {
		return s.updateAttachments(t, "dev", mapping.AttachmentUpdate{IDs: []int64{5}, Flags: []mapping.FlagChange{flag}})
	}
	set := flags(mapping.FlagChange{TypeID: new(int64(1)), Status: "?", Requestee: new("plain@example.com"), New: new(true)})
	if set[0].Changes["flagtypes.name"].Added != "review?(plain@example.com)" {
		t.Errorf("setting a flag reports %+v", set[0].Changes)
	}
	held := s.byID(t, "", "5").Attachments["5"].Flags
	if len(held) != 1 || held[0].Status != "?" {
		t.Fatalf("attachment 5 holds flags %+v, want one review?", held)
	}
	flags(mapping.FlagChange{ID: new(held[0].ID), Status: "+"})
	if held := s.byID(t, "", "5").Attachments["5"].Flags; len(held) != 1 || held[0].Status != "+" {
		t.Errorf("attachment 5 holds flags %+v, want one review+", held)
	}
	flags(mapping.FlagChange{Name: new("review"), Status: "X"})
	if held := s.byID(t, "", "5").Attachments["5"].Flags; len(held) != 0 {
		t.Errorf("attachment 5 still holds flags %+v", held)
	}
}

func errorsCarryCode(t *testing.T, s Subject) {
	for _, c := range []struct {
		user, bug    string
		code, status int
	}{
		{"", "99999", 101, 404}, {"", "4", 102, 401}, {"", "no-such-alias", 100, 400},
		{"invalid", "5", 306, 400}, {"revoked", "5", 306, 400},
	} {
		_, err := s.do(t, c.user, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{c.bug}}})
		wantCode(t, err, c.code, c.status)
	}
}
