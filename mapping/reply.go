package mapping

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// FlagTypes answers FlagTypesRequest: {"bug": […], "attachment": […]}. The
// document is in memory, in a stable form, and its ETag is a quoted strong tag
// of Portico's own.
type FlagTypes struct {
	*Document
	// Cache tells how the cache came by the answer; nil without a cache.
	Cache *CacheInfo
}

// CacheInfo is what an answer says of the cache in Cache-Status (RFC 9211) and Age.
type CacheInfo struct {
	// Hit says that the tracker was not asked for this answer.
	Hit bool
	// Stale says that a hit is older than its time to live.
	Stale bool
	// Collapsed says that the answer was fetched for another request too.
	Collapsed bool
	// Stored says that the answer is in the cache from now on.
	Stored bool
	// Forward is why the tracker was asked, as in RFC 9211: miss, stale,
	// request, bypass; empty on a hit.
	Forward string
	// TTL is how long the answer stays fresh; negative when it is stale.
	TTL time.Duration
	// Age is how long ago the tracker gave the answer.
	Age time.Duration
	// Detail is one bounded word more, such as the level of a hit.
	Detail string
}

// FlagTypeCreated answers FlagTypeCreate: {"id": int, "flag_id": int}, as the
// sample and the table of interface.md name the same thing differently.
type FlagTypeCreated struct{ *Document }

// FlagTypesUpdated answers FlagTypeUpdate: {"flagtypes": [{id, name, changes}…]}.
type FlagTypesUpdated struct{ *Document }

// Attachments answers AttachmentsRequest:
// {"bugs": {"<id>": [attachment…]}, "attachments": {"<id>": attachment}}.
type Attachments struct{ *Document }

// AttachmentsCreated answers AttachmentCreate: {"ids": [int…]}, integers as
// real trackers send them (wire-facts.md section 6).
type AttachmentsCreated struct{ *Document }

// AttachmentsUpdated answers AttachmentUpdate:
// {"attachments": [{id, last_change_time, changes}…]}.
type AttachmentsUpdated struct{ *Document }

// ID gives the id of the new flag type, 0 when the answer has none.
func (r FlagTypeCreated) ID() int64 {
	if r.text == nil || jsontext.Value(r.text).Kind() != '{' {
		return 0
	}
	members := splitObject(r.text)
	for _, name := range []string{"id", "flag_id"} {
		if text, ok := wordText(members.Get(name)); ok {
			id, _ := parseID(text)
			return id
		}
	}
	return 0
}

// WithFlagID gives the answer both names that interface.md has for the id, which is
// an integer also where a tracker sends a text.
func (r FlagTypeCreated) WithFlagID() error {
	members := splitObject(r.text)
	id, flagID := members.Get("id"), members.Get("flag_id")
	if isNull(id) {
		id = flagID
	}
	if isNull(flagID) {
		flagID = id
	}
	if id != nil {
		members.Set("id", integer(id))
		members.Set("flag_id", integer(flagID))
	}
	return r.Replace(members.AppendJSON(nil))
}

// integer makes an integer of an id that a tracker sends as a text. Clients format
// ids as numbers (clients.md, section 4, row 9).
func integer(value jsontext.Value) jsontext.Value {
	if value.Kind() != '"' {
		return value
	}
	if id, ok := parseDigits(unquote(value)); ok {
		return jsontext.Value(strconv.FormatInt(id, 10))
	}
	return value
}

// WithIntegers makes integers of ids that a tracker sends as texts.
func (r AttachmentsCreated) WithIntegers() error {
	members := splitObject(r.text)
	list := items(members.Get("ids"))
	if members.Get("ids").Kind() != '[' || !slices.ContainsFunc(list, func(id jsontext.Value) bool { return id.Kind() == '"' }) {
		return nil
	}
	members.Set("ids", eachElement(integer)(members.Get("ids")))
	return r.Replace(members.AppendJSON(nil))
}

// FromAttachmentMap turns the reply {"attachments": {"id": {…}}}, which some
// dialects give (wire-facts.md section 9), into {"ids": [int…]} in ascending
// order. Any other reply stays as it is. It goes by the reply alone, since the
// dialect of a tracker may not be known yet when it is asked.
func (r AttachmentsCreated) FromAttachmentMap() error {
	members := splitObject(r.text)
	created := members.Get("attachments")
	if members.Get("ids") != nil || created.Kind() != '{' {
		return nil
	}
	var ids []int64
	eachMember(created, func(name string, _ jsontext.Value) {
		if id, ok := parseID(name); ok {
			ids = append(ids, id)
		}
	})
	slices.Sort(ids)
	members.Take("attachments")
	members.Set("ids", intList(ids))
	return r.Replace(members.AppendJSON(nil))
}
