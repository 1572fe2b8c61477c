package switchover

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// NoLookups is a Locator that asks no tracker. It passes what the rules need to know to Note, and returns an error, so that the request
// ends there.
type NoLookups struct{ Note func(question string) }

var _ Locator = NoLookups{}

func (n NoLookups) note(format string, args ...any) error {
	n.Note(fmt.Sprintf(format, args...))
	return &mapping.Error{
		Code: mapping.CodeUnavailable, Status: http.StatusServiceUnavailable, Reason: mapping.ReasonSwitchover, Message: "Nothing is looked up here.",
	}
}

// Bug implements Locator.
func (n NoLookups) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	return mapping.Place{}, n.note("the product and component of bug %s", ref)
}

// AttachmentBug implements Locator.
func (n NoLookups) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	return 0, n.note("the bug of attachment %d", id)
}

// FlagTypePlaces implements Locator.
func (n NoLookups) FlagTypePlaces(_ context.Context, _ upstream.Caller, ids []int64, names []string) ([]string, []mapping.Scopes, error) {
	return nil, nil, n.note("the products of the flag types %s", strings.TrimSpace(strings.Trim(fmt.Sprint(ids), "[]")+" "+strings.Join(names, " ")))
}
