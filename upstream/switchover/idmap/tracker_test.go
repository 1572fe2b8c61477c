package idmap_test

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/switchover/idmap"
)

// paired is a map with an object of each kind that both trackers have.
func paired(t testing.TB) *idmap.Map {
	t.Helper()
	type table = map[idmap.Name]idmap.Name
	m := newMap(t, idmap.Names{
		Product: table{"Prod": "New Product"}, Component: table{"Comp": "New Component"}, Group: table{"editors": "new-editors"},
		FlagType: table{"review": "approval"}, User: table{"ann@example.com": "ann@example.org"},
	})
	pair(t, m, idmap.Bug, 7, idmap.NewSide, 907)
	pair(t, m, idmap.Attachment, 5, idmap.NewSide, 905)
	pair(t, m, idmap.Attachment, offset+77, idmap.OldSide, 12)
	pair(t, m, idmap.FlagType, 3, idmap.NewSide, 903)
	pair(t, m, idmap.Flag, 4, idmap.NewSide, 904)
	pair(t, m, idmap.Group, 2, idmap.NewSide, 902)
	return m
}

func TestRepliesOfTheNewTracker(t *testing.T) {
	m := paired(t)
	for _, c := range []struct {
		name, reply, want string
		call              upstream.Call
	}{
		{
			"attachments of a bug",
			`{"bugs": {"907":[{"id":905,"bug_id":907,"data":"aGk=","creator":"ann@example.org","creator_detail":{"id":1,"name":"ann@example.org","email":"ann@example.org"},"flags":[{"id":904,"type_id":903,"name":"approval","setter":"Ann@example.org","requestee":"bob@example.org","status":"?"}]}]},"attachments":{"905":{"id":"905"}, "77":{"id":77,"x":{"id":1}}}}`,
			`{"bugs": {"7":[{"id":5,"bug_id":7,"data":"aGk=","creator":"ann@example.com","creator_detail":{"id":1,"name":"ann@example.com","email":"ann@example.com"},"flags":[{"id":4,"type_id":3,"name":"review","setter":"ann@example.com","requestee":"bob@example.org","status":"?"}]}]},"attachments":{"5":{"id":"5"}, "1000000077":{"id":1000000077,"x":{"id":1}}}}`,
			upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"7"}}},
		},
		{
			"attachment create", `{"ids":[80,78],"attachments":{"78":{"id":78}}}`, `{"ids":[1000000080,1000000078],"attachments":{"1000000078":{"id":1000000078}}}`,
			upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"7"}}},
		},
		{
			"attachment update",
			`{"attachments":[{"id":905,"changes":{"flagtypes.name":{"removed":"","added":"approval?(ann@example.org), approval?(a-b@example.org), other+"},"summary":{"removed":"905","added":"approval"}}}]}`,
			`{"attachments":[{"id":5,"changes":{"flagtypes.name":{"removed":"","added":"review?(ann@example.com), review?(a-b@example.org), other+"},"summary":{"removed":"905","added":"approval"}}}]}`,
			updating(5),
		},
		{
			"flag type create", `{"id":60,"flag_id":60}`, `{"id":1000000060,"flag_id":1000000060}`,
			upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{}},
		},
		{
			"flag type update",
			`{"flagtypes":[{"id":903,"name":"approval","changes":{"name":{"removed":"x","added":"approval"},"grant_group_id":{"removed":null,"added":"902"},"request_group_id":{"removed":"9","added":null},"sortkey":{"removed":"902","added":"903"}}}]}`,
			`{"flagtypes":[{"id":3,"name":"review","changes":{"name":{"removed":"x","added":"review"},"grant_group_id":{"removed":null,"added":"2"},"request_group_id":{"removed":"1000000009","added":null},"sortkey":{"removed":"902","added":"903"}}}]}`,
			upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{3}}},
		},
		{
			"names alone", `{"flagtypes":[{"name":"approval"}]}`, `{"flagtypes":[{"name":"review"}]}`,
			upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{3}}},
		},
		{
			"flag types",
			`{"bug":[{"id":903,"name":"approval","inclusions":["New Component","A"]}],"attachment":[{"id":8,"name":"other"}]}`,
			`{"attachment":[{"id":1000000008,"name":"other"}],"bug":[{"id":3,"inclusions":["A","Comp"],"name":"review"}]}`,
			upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "Prod"}},
		},
	} {
		for form, reply := range map[string]func() *mapping.Document{"in memory": text(c.reply), "arriving": stream(c.reply)} {
			t.Run(c.name+" "+form, func(t *testing.T) {
				if c.name == "flag types" && form == "arriving" {
					t.Skip("flag types are always in memory")
				}
				answer, err := m.Tracker("new", &inner{reply: reply}).Do(t.Context(), caller, c.call)
				got := process.Text(t, answer.Document, err)
				want := c.want
				if form == "arriving" { // without the white space
					want = strings.ReplaceAll(strings.ReplaceAll(want, `"bugs": `, `"bugs":`), `}, "1`, `},"1`)
				}
				if got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

func TestNamesOfTheOldTrackerStay(t *testing.T) {
	const reply = `{"attachments":[{"id":5,"creator":"ann@example.org","changes":{"flagtypes.name":{"removed":"","added":"approval?(ann@example.org)"}}}]}`
	answer, err := paired(t).Tracker("old", &inner{reply: text(reply)}).Do(t.Context(), caller, updating(5))
	if got := process.Text(t, answer.Document, err); got != reply {
		t.Errorf("got %s", got)
	}
}

func TestRequestsReachTheTrackerWithItsOwnIDs(t *testing.T) {
	m, in := paired(t), &inner{reply: text(`{}`)}
	tr := m.Tracker("new", in)
	flags := []mapping.FlagChange{{TypeID: new(int64(3)), ID: new(int64(4)), Name: new("review"), Requestee: new("ANN@example.com"), Status: "?"}}
	native := []mapping.FlagChange{{TypeID: new(int64(903)), ID: new(int64(904)), Name: new("approval"), Requestee: new("ann@example.org"), Status: "?"}}
	scopes := mapping.Scopes{{Product: "Prod", Components: []string{"comp"}}, {Product: "Other"}}
	nativeScopes := mapping.Scopes{{Product: "New Product", Components: []string{"New Component"}}, {Product: "Other"}}

	read := mapping.AttachmentsRequest{Bugs: []string{"07", "alias", " 7"}, Attachments: []string{"5", strconv.Itoa(offset + 6)}}
	_, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &read})
	check(t, err, in.call.Attachments, &mapping.AttachmentsRequest{Bugs: []string{"907", "alias", "907"}, Attachments: []string{"905", "6"}})
	_, err = tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"alias"}, PathBug: "7", Flags: flags}})
	check(t, err, in.call.CreateAttachment, &mapping.AttachmentCreate{Bugs: []string{"alias"}, PathBug: "907", Flags: native})
	_, err = tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{5, offset + 6}, Flags: flags}})
	check(t, err, in.call.UpdateAttachments, &mapping.AttachmentUpdate{IDs: []int64{905, 6}, Flags: native})
	fields := mapping.FlagTypeFields{Name: new("review"), Inclusions: &scopes, Exclusions: &scopes, GrantGroup: new("Editors"), RequestGroup: new("")}
	nativeFields := mapping.FlagTypeFields{
		Name: new("approval"), Inclusions: &nativeScopes, Exclusions: &nativeScopes, GrantGroup: new("new-editors"), RequestGroup: new(""),
	}
	_, err = tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: fields}})
	check(t, err, in.call.CreateFlagType, &mapping.FlagTypeCreate{FlagTypeFields: nativeFields})
	_, err = tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{3}, Names: []string{"Review", "x"}, FlagTypeFields: fields}})
	check(t, err, in.call.UpdateFlagTypes, &mapping.FlagTypeUpdate{IDs: []int64{903}, Names: []string{"approval", "x"}, FlagTypeFields: nativeFields})

	// What the caller holds must be as before: it may make the call again, at the other tracker.
	check(t, nil, flags, []mapping.FlagChange{{TypeID: new(int64(3)), ID: new(int64(4)), Name: new("review"), Requestee: new("ANN@example.com"), Status: "?"}})
	check(t, nil, scopes, mapping.Scopes{{Product: "Prod", Components: []string{"comp"}}, {Product: "Other"}})
	check(t, nil, read.Bugs, []string{"07", "alias", " 7"})
}

func check[T any](t *testing.T, err error, got, want T) {
	t.Helper()
	if err != nil {
		t.Error(err)
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheOldTrackerKeepsItsIDsAndNames(t *testing.T) {
	m := paired(t)
	in := &inner{reply: text(`{"attachments":[{"id":5},{"id":12},{"id":13}],"bugs":{}}`)}
	reply, err := m.Tracker("old", in).Do(t.Context(), caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{
		IDs: []int64{5, offset + 77, 13}, Flags: []mapping.FlagChange{{Name: new("review")}},
	}})
	if got, want := process.Text(t, reply.Document, err), `{"attachments":[{"id":5},{"id":1000000077},{"id":13}],"bugs":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	check(t, nil, in.call.UpdateAttachments, &mapping.AttachmentUpdate{IDs: []int64{5, 12, 13}, Flags: []mapping.FlagChange{{Name: new("review")}}})
}

// TestANameOfTheNewTrackerIsRefused: the rules would take it for something else, and the old tracker does not know it.
func TestANameOfTheNewTrackerIsRefused(t *testing.T) {
	m := paired(t)
	fields := func(f mapping.FlagTypeFields) upstream.Call {
		return upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: f}}
	}
	flag := func(f mapping.FlagChange) upstream.Call {
		return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{5}, Flags: []mapping.FlagChange{f}}}
	}
	for name, call := range map[string]upstream.Call{
		"new product":     fields(mapping.FlagTypeFields{Inclusions: &mapping.Scopes{{Product: "new product"}}}),
		"New Component":   fields(mapping.FlagTypeFields{Exclusions: &mapping.Scopes{{Product: "Other", Components: []string{"New Component"}}}}),
		"new-editors":     fields(mapping.FlagTypeFields{GrantGroup: new("new-editors")}),
		"approval":        flag(mapping.FlagChange{Name: new("approval")}),
		"ann@example.org": flag(mapping.FlagChange{Requestee: new("ann@example.org")}),
	} {
		for side, refused := range map[idmap.Side]bool{idmap.OldSide: false, idmap.NewSide: name != "New Component"} { // which another product may have
			in := &inner{reply: text(`{}`)}
			_, err := m.Tracker(string(side), in).Do(t.Context(), caller, call.Copy())
			failed, _ := errors.AsType[*mapping.Error](err)
			if got := failed != nil && failed.Reason == "unmapped-id" && failed.Status == http.StatusNotFound && strings.Contains(failed.Message, name) && in.call.Operation == ""; got != refused {
				t.Errorf("%s at the %s tracker: %v", name, side, err)
			}
		}
	}
}

func TestAnIDThatTheTrackerDoesNotHaveIsRefused(t *testing.T) {
	m := paired(t)
	for _, c := range []struct {
		name string
		side idmap.Side
		kind string
		id   int64
		code int
		call upstream.Call
	}{
		{"bug of the old tracker", idmap.NewSide, "bug", 8, 101, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"8"}}}},
		{"attachment of the old tracker", idmap.NewSide, "attachment", 6, 32000, updating(5, 6)},
		{"attachment of the new tracker", idmap.OldSide, "attachment", offset + 5, 32000, reading(offset + 5)},
		{"native id of a copy at the old tracker", idmap.OldSide, "attachment", 12, 32000, reading(12)},
		{"native id of a copy at the new tracker", idmap.NewSide, "attachment", offset + 905, 32000, reading(offset + 905)},
		{"offset at the old tracker", idmap.OldSide, "attachment", offset, 32000, updating(offset)},
		{"offset at the new tracker", idmap.NewSide, "attachment", offset, 32000, updating(offset)},
		{"flag", idmap.NewSide, "flag", 41, 51, upstream.Call{
			Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{5}, Flags: []mapping.FlagChange{{ID: new(int64(41))}}},
		}},
		{"flag type", idmap.NewSide, "flag type", 31, 51, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{31}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &inner{reply: text(`{}`)}
			_, err := m.Tracker(string(c.side), in).Do(t.Context(), caller, c.call)
			failed := refusal(t, err)
			if failed.Code != c.code || failed.Status != http.StatusNotFound || failed.Reason != "unmapped-id" || failed.Unknown ||
				!strings.Contains(failed.Message, c.kind+" "+strconv.FormatInt(c.id, 10)) {
				t.Errorf("got %+v", failed)
			}
			if in.call.Operation != "" {
				t.Error("the tracker was asked")
			}
			_, _ = m.Tracker(string(c.side), in).Do(t.Context(), caller, c.call) // once more
			last := m.Unpaired()[0]
			if last.ID != c.id || last.Side != c.side || strings.ReplaceAll(string(last.Kind), "_", " ") != c.kind || last.Times != 2 {
				t.Errorf("the last id without a pair is %+v", last)
			}
		})
	}
}

// TestAnIDThatIsServedIsNoLongerListed, whichever tracker serves it.
func TestAnIDThatIsServedIsNoLongerListed(t *testing.T) {
	m := paired(t)
	for _, side := range []idmap.Side{idmap.NewSide, idmap.OldSide} {
		in := &inner{reply: text(`{"attachments":[]}`)}
		_, err := m.Tracker(string(side), in).Do(t.Context(), caller, updating(77))
		if got := len(m.Unpaired()); (side == idmap.NewSide) != (got == 1) || (err != nil) != (got == 1) {
			t.Errorf("at the %s side: %d are listed (%v)", side, got, err)
		}
	}
}

func TestErrorsQuoteTheIDThatTheClientSent(t *testing.T) {
	m := paired(t)
	pair(t, m, idmap.Attachment, 6, idmap.NewSide, 906)
	for message, want := range map[string]string{
		"The attachment id 905 is invalid.":              "The attachment id 5 is invalid.",
		"There is no flagtype with the id '903'.":        "There is no flagtype with the id '3'.",
		"There is no flag with the id '904' of 9051, x9": "There is no flag with the id '4' of 9051, x9",
		"at line 905a or a905 or é905.":                  "at line 905a or a905 or é905.",
		"905":                                            "5",
		"":                                               "",
	} {
		in := &inner{err: &mapping.Error{Code: 51, Status: 404, Message: message}}
		_, err := m.Tracker("new", in).Do(t.Context(), caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{
			IDs: []int64{5, 6}, Flags: []mapping.FlagChange{{ID: new(int64(4)), TypeID: new(int64(3))}},
		}})
		if failed := refusal(t, err); failed.Message != want || failed.Code != 51 {
			t.Errorf("%q became %q, want %q", message, failed.Message, want)
		}
		if in.err.(*mapping.Error).Message != message {
			t.Error("the tracker's error was changed in place")
		}
	}
}

func TestTagsStandForTranslatedReplies(t *testing.T) {
	m := paired(t)
	in := &inner{}
	request := mapping.AttachmentsRequest{Attachments: []string{"5"}}
	tags := map[string]string{}
	for _, native := range []string{`abc+/`, `"abc"`, `W/"abc"`} {
		for _, side := range []idmap.Side{idmap.OldSide, idmap.NewSide} {
			in.reply = func() *mapping.Document {
				document := mapping.NewDocument([]byte(`{"bugs":{},"attachments":{}}`))
				document.ETag = native
				return document
			}
			tr := m.Tracker(string(side), in)
			reply, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &request})
			must(t, err)
			if other := tags[reply.ETag]; other != "" || reply.ETag == native {
				t.Errorf("%s of the %s tracker has the tag %s, as has %s", native, side, reply.ETag, other)
			}
			tags[reply.ETag] = native
			again := request
			again.IfNoneMatch = reply.ETag
			in.reply = func() *mapping.Document { return &mapping.Document{NotModified: true} }
			if reply, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &again}); err != nil || !reply.NotModified || in.call.Attachments.IfNoneMatch != native {
				t.Errorf("the tracker was shown %q, want %q (%v)", in.call.Attachments.IfNoneMatch, native, err)
			}
			for _, foreign := range []string{native, strings.Replace(reply.ETag, string(side), "x", 1)} {
				if again.IfNoneMatch = foreign; again.IfNoneMatch == reply.ETag {
					continue
				}
				if _, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &again}); err != nil || in.call.Attachments.IfNoneMatch != "" {
					t.Errorf("the tracker was shown %q for %q", in.call.Attachments.IfNoneMatch, foreign)
				}
			}
		}
	}
}

func TestFlagTypesOfTheCacheAreTranslatedOnce(t *testing.T) {
	m := paired(t)
	in := &inner{reply: func() *mapping.Document {
		reply := mapping.Reply{Document: mapping.NewDocument([]byte(`{"bug":[{"id":903,"name":"approval"}],"attachment":[]}`))}
		if err := reply.Stabilize(); err != nil {
			t.Error(err)
		}
		return reply.Document
	}}
	tr := m.Tracker("new", in)
	if _, err := tr.(upstream.Peeker).Peek(t.Context(), caller, mapping.FlagTypesRequest{Product: "Prod"}); !errors.Is(err, upstream.ErrNotLocal) {
		t.Errorf("a reply that was never translated was at hand: %v", err)
	}
	first, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "Prod"}})
	got, tag := process.Text(t, first.Document, err), first.ETag
	for _, read := range []string{"FlagTypes", "Peek"} {
		reply, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "Prod"}})
		if read == "Peek" {
			reply, err = tr.(upstream.Peeker).Peek(t.Context(), caller, mapping.FlagTypesRequest{Product: "Prod"})
		}
		if again := process.Text(t, reply.Document, err); again != got || reply.ETag != tag {
			t.Errorf("%s gives %s with the tag %s, at first %s with %s", read, again, reply.ETag, got, tag)
		}
	}
	if want := `{"attachment":[],"bug":[{"id":3,"name":"review"}]}`; got != want || tag == in.reply().ETag {
		t.Errorf("got %s with the tag %s, want %s", got, tag, want)
	}
	if in.call.FlagTypes.Product != "New Product" {
		t.Errorf("the tracker was asked for product %q", in.call.FlagTypes.Product)
	}
}

func TestAWriteWhoseReplyCannotBeTranslatedIsUnknown(t *testing.T) {
	m := newMap(t, idmap.Names{})
	in := &inner{reply: text(`{"ids":[2147483647]}`)}
	_, err := m.Tracker("new", in).Do(t.Context(), caller, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{}})
	if failed := refusal(t, err); !failed.Unknown || failed.Status != 500 || failed.Reason != upstream.ReasonUnmapped || upstream.NotWritten(err) {
		t.Errorf("got %+v", failed)
	}
	in.reply = text(`{"ids":[1000000000]}`)
	_, err = m.Tracker("old", in).Do(t.Context(), caller, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{}})
	if failed := refusal(t, err); !failed.Unknown {
		t.Errorf("an id of the old tracker from the range of the new one gives %+v", failed)
	}
}

func TestBugFlagsAreRefused(t *testing.T) {
	tr := newMap(t, idmap.Names{}).Tracker("new", &inner{})
	extra := mapping.Members{{Name: "bug_flags", Value: []byte(`[]`)}}
	_, created := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Extra: extra}})
	_, updated := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{Extra: extra}})
	for _, err := range []error{created, updated} {
		if failed := refusal(t, err); failed.Reason != mapping.ReasonInexpressive {
			t.Errorf("got %+v", failed)
		}
	}
}

func TestLookups(t *testing.T) {
	m := paired(t)
	in := &locator{
		place:  mapping.Place{Bug: 907, Product: "New Product", Component: "New Component"},
		scopes: []mapping.Scopes{{{Product: "New Product", Components: []string{"New Component"}}}, nil, nil},
	}
	l := m.Locator("new", in)
	place, err := l.Bug(t.Context(), caller, "7")
	check(t, err, place, mapping.Place{Bug: 7, Product: "Prod", Component: "Comp"})
	check(t, nil, in.bug, "907")
	bug, err := l.AttachmentBug(t.Context(), caller, 5)
	check(t, err, bug, 7)
	check(t, nil, in.attachment, 905)
	products, places, err := l.FlagTypePlaces(t.Context(), caller, []int64{3, 31}, []string{"review"})
	check(t, err, products, []string{"Prod"})
	check(t, nil, places, []mapping.Scopes{{{Product: "Prod", Components: []string{"Comp"}}}, nil, nil})
	check(t, nil, in.ids, []int64{903, -1})
	check(t, nil, in.names, []string{"approval"})
	native, err := m.Native(t.Context(), "new", idmap.Attachment, 5)
	check(t, err, native, 905)

	*in = locator{}
	place, err = l.Bug(t.Context(), caller, "8") // which only the old tracker has
	check(t, err, place, mapping.Place{})
	bug, err = l.AttachmentBug(t.Context(), caller, 6)
	check(t, err, bug, 0)
	if in.bug != "" || in.attachment != 0 {
		t.Error("the tracker was asked for what it cannot have")
	}
	bug, err = l.AttachmentBug(t.Context(), caller, 5) // which is there no longer
	check(t, err, bug, 0)
	in.err = &mapping.Error{Code: 102, Status: 401, Message: "You are not authorized to access bug #907."}
	_, err = l.Bug(t.Context(), caller, "7")
	check(t, nil, refusal(t, err).Message, "You are not authorized to access bug #7.")
}

func TestOtherSettingsGiveOtherTags(t *testing.T) {
	in := &inner{reply: func() *mapping.Document {
		document := mapping.NewDocument([]byte(`{"bugs":{},"attachments":{}}`))
		document.ETag = "abc"
		return document
	}}
	tags := map[string]bool{}
	for _, m := range []*idmap.Map{paired(t), newMap(t, idmap.Names{}), newMap(t, idmap.Names{})} {
		reply, err := m.Tracker("new", in).Do(t.Context(), caller, reading(1000000005))
		must(t, err)
		tags[reply.ETag] = true
	}
	if len(tags) != 2 {
		t.Errorf("two settings gave the tags %v", tags)
	}
}
