package idmap

import (
	"fmt"
	"net/http"
	"time"

	"portico/mapping"
)

// ReasonUnmapped is the reason of errors about ids that cannot be translated.
const ReasonUnmapped mapping.Reason = "unmapped-id"

// codes are those by which trackers say that there is no such object (tracker-behaviour.md section 11).
var codes = map[Kind]int{Bug: 101, Attachment: mapping.CodeJSON}

// unmapped is the error of an id for which one side has no object.
func unmapped(side Side, r ref) *mapping.Error {
	code, ok := codes[r.kind]
	if !ok {
		code = mapping.CodeNotFound
	}
	return &mapping.Error{
		Code: code, Status: http.StatusNotFound, Reason: ReasonUnmapped,
		Message: fmt.Sprintf("There is no %s %d: no id of it is known at the %s tracker, which has to respond.", r.kind.words(), r.id, side),
	}
}

// beyond is the error of a native id that cannot be shown to clients.
func beyond(side Side, r ref) *mapping.Error {
	return &mapping.Error{
		Code: mapping.CodeInternal, Status: http.StatusInternalServerError, Reason: ReasonUnmapped,
		Message: fmt.Sprintf("The %s tracker has a %s whose id is beyond the range that clients can be shown.", side, r.kind.words()),
		Err:     fmt.Errorf("its id is %d; see switchover.ids", r.id),
	}
}

// unavailable is the error where the store cannot be asked.
func unavailable(cause error) *mapping.Error {
	return &mapping.Error{
		Code: mapping.CodeUnavailable, Status: http.StatusServiceUnavailable, Reason: ReasonUnmapped, RetryAfter: time.Second, Err: cause,
		Message: "Ids cannot be translated now, because the store of Portico does not respond. Try again later.",
	}
}
