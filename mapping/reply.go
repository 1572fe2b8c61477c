package mapping

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Reply is the reply to a request. Its members are those of interface.md section 3; that to a flag type read is in memory, in a
// stable form, and its ETag is a quoted strong tag of Portico's own.
type Reply struct {
	*Document
	// Cache tells how the cache came by the reply, or by the error beside it; nil without a cache.
	Cache *CacheInfo
}

// CacheInfo is what a response says of the cache in Cache-Status (RFC 9211) and Age.
type CacheInfo struct {
	// Hit says that the tracker was not asked for this reply.
	Hit bool
	// Stale says that a hit is older than its time to live.
	Stale bool
	// Collapsed says that the reply was fetched for another request too.
	Collapsed bool
	// Stored says that the reply is in the cache from now on.
	Stored bool
	// Forward is why the tracker was asked, as in RFC 9211: miss, stale,
	// request, bypass; empty on a hit.
	Forward string
	// TTL is how long the reply stays fresh; negative when it is stale.
	TTL time.Duration
	// Age is how long ago the tracker gave the reply.
	Age time.Duration
	// Detail is one bounded word more, such as the level of a hit.
	Detail string
}

// ID gives the id that the reply to a flag type create has, 0 without one. The sample and the table of interface.md name it differently.
func (d *Document) ID() int64 {
	members := splitObject(d.text)
	for _, name := range []string{"id", "flag_id"} {
		if text, ok := wordText(members.Get(name)); ok {
			id, _ := parseID(text)
			return id
		}
	}
	return 0
}

// WithFlagID gives the reply to a flag type create both names that interface.md has for the id, which is
// an integer also where a tracker sends a text.
func (d *Document) WithFlagID() error {
	members := splitObject(d.text)
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
	return d.Replace(members.AppendJSON(nil))
}

// integer makes an integer of an id that a tracker sends as a text. Clients format
// ids as numbers (docs/reference/clients.md duty 9).
func integer(value jsontext.Value) jsontext.Value {
	if value.Kind() != '"' {
		return value
	}
	if id, ok := parseDigits(unquote(value)); ok {
		return jsontext.Value(strconv.FormatInt(id, 10))
	}
	return value
}

// WithCreatedIDs gives the reply to an attachment create the member ids, a list of integers. The dialect bmo sends
// {"attachments": {"id": {…}}} instead (tracker-behaviour.md section 14), which stays beside it; here the ids ascend.
// A list that a tracker sends has integers also for texts. Any other reply stays as it is. It goes by the reply
// alone, since the dialect may not be known yet.
func (d *Document) WithCreatedIDs() error {
	members := splitObject(d.text)
	ids, created := members.Get("ids"), members.Get("attachments")
	switch {
	case ids == nil && created.Kind() == '{':
		var list []int64
		for _, member := range splitObject(created) {
			if id, ok := parseID(member.Name); ok {
				list = append(list, id)
			}
		}
		slices.Sort(list)
		ids = intList(list)
	case ids.Kind() != '[' || !slices.ContainsFunc(items(ids), func(id jsontext.Value) bool { return id.Kind() == '"' }):
		return nil
	}
	members.Set("ids", eachElement(integer)(ids))
	return d.Replace(members.AppendJSON(nil))
}

// Place is where a bug belongs, as far as the tracker tells the caller.
type Place struct {
	// Bug is the id, also where an alias was asked for.
	Bug       int64  `json:"id"`
	Product   string `json:"product"`
	Component string `json:"component"`
}
