package idmap

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CheckPassing returns an error for a request outside the operations, which is not translated, if it would mean another object at a tracker than
// to the client, or could show ids that clients do not know. query returns the values of a parameter. isOperation says that it is an operation in the
// form of an older interface.
func (m *Map) CheckPassing(ctx context.Context, tracker, path string, query func(name string) []string, isOperation bool) error {
	side := m.sideOf(tracker)
	named := &translation{Map: m, side: side}
	add := func(kind Kind, list []string) { each(named.text, kind, strings.Split(strings.Join(list, ","), ",")) }
	path, _ = url.PathUnescape(path) // the server has refused invalid ones
	switch segments := strings.Split(strings.Trim(path, "/"), "/"); {
	case len(segments) > 1 && strings.HasPrefix(segments[0], "rest") && segments[1] == "bug":
		add(Bug, slices.Concat(segments[2:min(3, len(segments))], query("id"), query("ids")))
	case segments[0] == "show_bug.cgi":
		add(Bug, query("id"))
	case segments[0] == "attachment.cgi":
		add(Attachment, query("id"))
		add(Bug, query("bugid"))
	}
	natives, err := m.natives(ctx, side, named.refs)
	if err := exceptAbsent(err); err != nil {
		return err
	}
	differs := side == NewSide && isOperation
	for i, native := range natives {
		differs = differs || native != named.refs[i].id
	}
	if !differs {
		return nil
	}
	return failure(http.StatusConflict, "This request has ids that are other ones at the tracker. Only the operations of the REST interface translate them.")
}
