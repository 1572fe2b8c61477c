package idmap

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"portico/mapping"
)

// CheckPassing returns an error for a request outside the operations, which is not translated, if it would mean another object at one side than
// to the client, or could show ids that clients do not know. isOperation says that it is an operation in the form of an older interface.
func (m *Map) CheckPassing(ctx context.Context, side Side, path string, query url.Values, isOperation bool) error {
	if isOperation && side == NewSide {
		return refusePassing("This call has ids that are other ones at the tracker, and only the REST interface translates them.")
	}
	named := &translation{Map: m, side: side}
	texts := map[Kind][]string{}
	switch segments := strings.Split(strings.Trim(path, "/"), "/"); {
	case len(segments) > 2 && strings.HasPrefix(segments[0], "rest") && segments[1] == "bug":
		texts[Bug] = segments[2:3]
	case segments[0] == "show_bug.cgi":
		texts[Bug] = query["id"]
	case segments[0] == "attachment.cgi":
		texts[Attachment], texts[Bug] = query["id"], query["bugid"]
	}
	for kind, list := range texts {
		each(named.text, kind, strings.Split(strings.Join(list, ","), ","))
	}
	natives, err := m.natives(ctx, side, named.refs)
	if err = exceptAbsent(err); err != nil {
		return err
	}
	for _, r := range named.refs {
		if natives[r] != r.id {
			return refusePassing(fmt.Sprintf("The tracker does not know %s %d by this id, and only the REST interface translates it.", r.kind.words(), r.id))
		}
	}
	return nil
}

func refusePassing(message string) error {
	return &mapping.Error{Code: 200000 + http.StatusConflict, Status: http.StatusConflict, Reason: ReasonUnmapped, Message: message}
}
