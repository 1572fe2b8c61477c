package idmap

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"portico/mapping"
	"portico/upstream"
)

// failure makes an error. Those of other statuses than 404 have a code of Portico's own.
func failure(status int, format string, args ...any) *mapping.Error {
	return mapping.NewError(200000+status, upstream.ReasonUnmapped, format, args...)
}

// unmapped is the error of an id for which one side has no object. Its code is that by which trackers say so (tracker-behaviour.md section 11).
func unmapped(side Side, r ref) *mapping.Error {
	err := failure(http.StatusNotFound, "There is no %s %d: no id of it is known at the %s tracker, which has to respond.", r.kind.words(), r.id, side)
	err.Code = cmp.Or(map[Kind]int{Bug: 101, Attachment: mapping.CodeJSON}[r.kind], mapping.CodeNotFound)
	return err
}

// beyond is the error of a native id that cannot be shown to clients.
func beyond(side Side, r ref) *mapping.Error {
	err := failure(http.StatusInternalServerError, "The id of this %s at the %s tracker is beyond the range that clients can be shown.", r.kind.words(), side)
	err.Err = fmt.Errorf("its id is %d; see switchover.ids", r.id)
	return err
}

// unavailable is the error where ids cannot be translated now.
func unavailable(why string, cause error) *mapping.Error {
	return mapping.TryLater(upstream.ReasonUnmapped, cause, "Ids cannot be translated now, because "+why+". Try again later.")
}

// message translates an error that quotes an id which the tracker was sent. Where the request has that id for several kinds, the first one counts.
func (t *translation) message(err error) error {
	failed, ok := errors.AsType[*mapping.Error](err)
	if !ok {
		return err
	}
	translated := *failed
	translated.Message = regexp.MustCompile(`[\pL\pN_]+`).ReplaceAllStringFunc(failed.Message, func(word string) string {
		id, err := strconv.ParseInt(word, 10, 64)
		if i := slices.Index(t.ids, id); err == nil && i >= 0 {
			return strconv.FormatInt(t.refs[i].id, 10)
		}
		return word
	})
	return &translated
}
