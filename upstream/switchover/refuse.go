package switchover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"portico/mapping"
)

// refuse makes the error of a write that is sent nowhere.
func refuse(format string, args ...any) *mapping.Error {
	err := mapping.Refuse(mapping.CodeBadParameter, format, args...)
	err.Reason = mapping.ReasonSwitchover
	return err
}

// unplaced is the error of a write whose place stays unknown. A tracker that told
// why it does not tell the place of a bug is the one to answer: it would have said
// the same of the write. So it would of anything with a key that it does not take.
func unplaced(o object, f *facts) error {
	if f.said != nil && (o.kind == bugObject || loginError(f.said)) {
		return f.said
	}
	err := refuse("It cannot be told to which of two trackers %s belongs, so nothing was changed. "+
		"The caller may not see it, or it is in no product that the caller sees.", o)
	err.Err = f.said
	return err
}

// divided is the error of a write that two trackers would have to carry out.
func divided(choices []choice, names [2]string) error {
	lists := [2][]string{}
	for _, made := range choices {
		if name := made.object.String(); !slices.Contains(lists[made.side], name) {
			lists[made.side] = append(lists[made.side], name)
		}
	}
	return refuse("This would have to be written in two trackers, so nothing was changed. %s: %s. %s: %s. Send one request for each.",
		names[oldSide], listed(lists[oldSide]), names[newSide], listed(lists[newSide]))
}

// waiting is the error of a write that could not begin, because one of the same
// object that began under former rules has not ended.
func waiting(o object, cause error) error {
	return &mapping.Error{
		Code: mapping.CodeUnavailable, Status: mapping.StatusOf(mapping.CodeUnavailable), Reason: mapping.ReasonSwitchover,
		Message:    fmt.Sprintf("Another write of %s still goes to the tracker that it moves away from; nothing was changed.", o),
		RetryAfter: time.Second, Err: cause,
	}
}

// unmerged is the error of answers that began well and could not be merged.
func unmerged(err error) error {
	if err == nil {
		return nil
	}
	failed := &mapping.Error{
		Code: mapping.CodeBadGateway, Reason: mapping.ReasonBadAnswer, Err: err,
		Message: "The answers of the two trackers could not be made into one.",
	}
	_, store := errors.AsType[*mapping.BlobError](err)
	switch {
	case store:
		failed.Code, failed.Reason = mapping.CodeInternal, mapping.ReasonInternal
	case errors.Is(err, context.DeadlineExceeded):
		failed.Code, failed.Reason, failed.Message = mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not answer in time."
	case errors.Is(err, context.Canceled):
		failed.Code, failed.Reason, failed.Message = mapping.CodeUnavailable, mapping.ReasonCanceled, "The request was given up."
	}
	failed.Status = mapping.StatusOf(failed.Code)
	return failed
}

// refused tells whether an error says for certain that nothing was written. What
// may have been sent is in doubt, whatever the reason why nobody waits any longer.
func refused(err error) bool {
	said, ok := errors.AsType[*mapping.Error](err)
	return ok && !said.Unknown && (said.Status < 500 || notSent(said.Reason))
}

func notSent(reason mapping.Reason) bool {
	switch reason {
	case mapping.ReasonUnreachable, mapping.ReasonBreakerOpen, mapping.ReasonOverload, mapping.ReasonInexpressive,
		mapping.ReasonSwitchover:
		return true
	default:
		return false
	}
}

// loginError tells whether a tracker does not accept the caller's credential, so
// that it would accept nothing else with it either (wire-facts.md section 11).
func loginError(err error) bool {
	said, ok := errors.AsType[*mapping.Error](err)
	return ok && (said.Code >= 300 && said.Code <= 307 && said.Code != 304 || said.Code == mapping.CodeLoginRequired)
}
