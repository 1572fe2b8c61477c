package recording

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// side is one side of a comparison.
type side struct {
	compare.Reply
	took time.Duration
	// reason is why the reply cannot be compared.
	reason string
}

// compare sends one request and counts what comes of it.
func (r *replay) compare(ctx context.Context, e Exchange) {
	want, have, reason := r.look(ctx, e)
	if e.Operation == "" || reason == skipNoAnswer || ctx.Err() != nil {
		return // it was sent for what it changes
	}
	tally := r.tallies[e.Operation]
	if tally == nil {
		tally = &state.Tally{At: time.Now().UTC().Truncate(time.Minute), Operation: e.Operation, Dropped: map[string]int64{}}
		r.tallies[e.Operation] = tally
	}
	var confirmed []compare.Difference
	noisy, same := false, false
	if reason == "" {
		if have.IsBroken() && !want.IsBroken() {
			tally.Failed++
		}
		if !r.isRecorded() {
			tally.AnsweredLatency = verdict.CountLatency(tally.AnsweredLatency, want.took)
			tally.OtherLatency = verdict.CountLatency(tally.OtherLatency, have.took)
		}
		confirmed = r.differences(e, want, have)
		if same = len(confirmed) == 0; !same && isRead(e.Request.Method) && !r.believed(e, confirmed) {
			confirmed, noisy, reason = r.confirm(ctx, e, want, have, confirmed)
		}
	}
	if ctx.Err() != nil { // the last responses say nothing
		confirmed, reason = nil, string(verdict.DropClosed)
	}
	tally.Compared++
	switch {
	case len(confirmed) > 0:
		tally.Confirmed++
		tally.Mismatch(r.record(e, confirmed), 1)
	case reason != "":
		tally.Compared--
		tally.Dropped[reason]++
	case same:
		tally.Same++
	case noisy:
		tally.Noisy++
	default:
		tally.Transient++
	}
}

// look gets both replies. Where that of the reference cannot be read the request is sent to the candidate all the same: it may
// change something, and what follows is compared.
func (r *replay) look(ctx context.Context, e Exchange) (want, have side, reason string) {
	switch {
	case !r.isRecorded():
		want = r.ask(ctx, r.Against, e)
	case e.Response == nil:
		want.reason = skipNoAnswer
	case e.Response.Status == http.StatusNotModified:
		want.reason = string(verdict.DropNotModified)
	default:
		response, err := decoded(*e.Response, r.MaxBody)
		want.Reply = replyOf(response)
		r.withoutMessages = r.withoutMessages || want.Message == "(text)"
		if err != nil || response.HTML && response.Status >= http.StatusInternalServerError {
			want.reason = string(verdict.DropUnreadable)
		}
	}
	if want.Failure != "" {
		want.reason = string(verdict.DropOtherFailed)
	}
	if want.Failure == string(mapping.ReasonUnreachable) {
		return want, have, want.reason
	}
	have = r.ask(ctx, r.Tracker, e)
	if have.reason != "" {
		have.reason = string(verdict.DropCandidateFailed)
	}
	if r.isRecorded() && e.Response != nil && e.Response.isPartial() {
		have.Body, have.Code, have.Message = nil, 0, ""
	}
	return want, have, cmp.Or(want.reason, have.reason)
}

// ask sends the request to a tracker and gives its reply, which says what the tracker did wrong.
func (r *replay) ask(ctx context.Context, base string, e Exchange) (s side) {
	began := time.Now()
	defer func() { s.took = time.Since(began) }()
	request := e.Request
	if !r.readsHeaders[base] {
		request, _ = keysInQuery(e)
	}
	if e.Operation != "" {
		// Compressed JSON cannot be compared member by member, and its bytes are others each time, since trackers order members at random.
		// A tag of the recording means nothing to another tracker.
		headers := map[string]string{"Accept-Encoding": "identity"}
		for name, value := range request.Headers {
			if !strings.EqualFold(name, "Accept-Encoding") && !strings.EqualFold(name, "If-None-Match") {
				headers[name] = value
			}
		}
		request.Headers = headers
	}
	response, err := r.send(ctx, base, request)
	sent := err == nil
	if sent {
		response, err = decoded(response, r.MaxBody)
	}
	s.Reply = replyOf(response)
	switch {
	case errors.Is(err, errTooLong):
		s.Failure = "endless"
	case !sent:
		s.Failure = string(mapping.ReasonUnreachable)
	case err != nil:
		s.reason = string(verdict.DropUnreadable)
	case !r.isRecorded() && !isReply(request, s.Reply):
		s.Failure = string(mapping.ReasonBadResponse)
	}
	return s
}

// replyOf gives what is compared of a response. Pages are compared by their type only: their text is another each time.
func replyOf(r Response) compare.Reply {
	reply := compare.Reply{Status: r.Status, Header: map[string]string{"content-type": mediaType(r.Headers)}}
	body := r.Body
	if frame := callbackFrame.FindSubmatch(body); frame != nil {
		body = frame[2]
	}
	members, err := mapping.ParseMembers(body)
	code, noCode := strconv.Atoi(string(members.Get("code")))
	if failed, _ := mapping.ParseBool(members.Get("error")); cmp.Or(err, noCode) == nil && failed {
		// The tracker's error body, which may come with the status of a success (tracker-behaviour.md section 1, Errors).
		reply.Code = code
		members.Take("code")
		reply.Message = textOf(members.Take("message"))
		body = members.AppendJSON(nil)
	}
	if isJSON(body) && !r.isPartial() {
		reply.Body = body
	}
	return reply
}

// isPartial reports whether a recording lacks the body of a response: then it is compared without.
func (r Response) isPartial() bool { return r.HTML || r.Elision != (Elision{}) }

// isReply distinguishes a reply of the tracker from what a server before it responds, such as a page that asks for a login or tells
// of maintenance: all servers respond with the same there. A client that asks for pages gets some from the tracker.
func isReply(r Request, reply compare.Reply) bool {
	page := reply.Header["content-type"] == "text/html" && strings.Contains(headerOf(r.Headers, "Accept"), "text/html")
	return reply.Body != nil || page && reply.Status < http.StatusInternalServerError
}

// between gives the differences between two replies.
func (r *replay) between(e Exchange, before, after side) []compare.Difference {
	return compare.Compare(e.Operation, before.Reply, after.Reply, r.Rules)
}

// differences compares two replies, and counts the rules that excuse some.
func (r *replay) differences(e Exchange, want, have side) []compare.Difference {
	if r.isRecorded() && bytes.Contains(want.Body, []byte("{{elided ")) {
		want.Body, have.Body = edit(elideData).json(want.Body), edit(elideData).json(have.Body)
	}
	var found []compare.Difference
	for _, d := range r.between(e, want, have) {
		switch {
		case d.Rule != "":
			r.uses[d.Rule] = state.RuleUse{Name: d.Rule, Hits: r.uses[d.Rule].Hits + 1, Last: time.Now().UTC()}
		case r.isRecorded() && (r.isLeftOut(d) || isOfTheRecording(d, *e.Response)):
		default:
			found = append(found, d)
		}
	}
	return found
}

// elideData leaves payloads out as a Redactor does.
func elideData(name, value string) string {
	if name != "data" {
		return value
	}
	return elide(value)
}

// leftOut matches what stands for a value in a recording, in a text whose special characters are escaped. Older recordings have (text) and
// (url) in place of texts of messages and of the address of the documentation.
var leftOut = regexp.MustCompile(`\\\{\\\{(caller|login|address|digest)-[0-9a-fx-]+\\\}\\\}|^\\\(text\\\)$|^\\\(url\\\)$`)

// isLeftOut reports whether a recording has something else in place of what the candidate replies.
func (r *replay) isLeftOut(d compare.Difference) bool {
	if d.Class == compare.ClassMessage && r.withoutMessages {
		return d.Have != nil
	}
	want := regexp.QuoteMeta(textOf(d.Want))
	pattern := leftOut.ReplaceAllStringFunc(want, func(found string) string {
		if strings.Contains(found, kindAddress) {
			return address().String()
		}
		return ".+"
	})
	matches, _ := regexp.MatchString("(?s)^"+pattern+"$", textOf(d.Have))
	return matches && pattern != want
}

// isOfTheRecording reports whether a difference is of a time at which something happened while the recording was made: it cannot come
// again.
func isOfTheRecording(d compare.Difference, recorded Response) bool {
	at, err := time.Parse(time.RFC3339, textOf(d.Want))
	made, bad := time.Parse(time.RFC1123, recorded.Headers["date"])
	return d.Class.HasTimes() && cmp.Or(err, bad) == nil && at.Sub(made).Abs() < 24*time.Hour
}

// record counts each kind of difference once for an exchange, and gives their signatures.
func (r *replay) record(e Exchange, confirmed []compare.Difference) []string {
	var signatures []string
	for _, d := range confirmed {
		if slices.Contains(signatures, d.Signature(e.Operation)) {
			continue
		}
		kind := "reply"
		if d.Unstable {
			kind = verdict.KindUnstable
		}
		note := fmt.Sprintf("first in %s at %s: %s became %s (%s)", e.Name, d.Pointer, r.shown(d.Want, d), r.shown(d.Have, d), d.Kind())
		signatures = append(signatures, r.find(e.Operation, d, kind, strings.TrimSuffix(note, " ()")))
	}
	return signatures
}

// shown gives a value as far as it may be shown.
func (r *replay) shown(value jsontext.Value, d compare.Difference) string {
	text := cmp.Or(string(r.redactor.Redact(value, d.Path)), "nothing")
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return text
}
