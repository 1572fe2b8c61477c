package canary

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

const (
	// firstPause is how long a candidate that follows is given before it is asked
	// again; the pauses double.
	firstPause = 100 * time.Millisecond
	// mostRead bounds the objects that are read after one write.
	mostRead = 20
)

// readback is where a reading after a write stands.
type readback struct {
	until time.Time
	pause time.Duration
}

// beginReadBack finds out what a write has touched.
func (c *Canary) beginReadBack(ctx context.Context, j *job) bool {
	if !c.plan(ctx, j) {
		c.drop(j.subject, DropPlanFailed)
		return false
	}
	reply, reason := c.clientSaw(j, false)
	if reason == "" {
		call, ok := touched(j.call, reply.Body)
		if !ok {
			reason = DropNothingToRead
		}
		j.call = call
	}
	if reason == "" && !c.confirms.Allow() {
		reason = DropConfirmLimit
	}
	if reason != "" {
		c.giveUp(j, reason)
		return false
	}
	j.readback = &readback{until: time.Now().Add(c.options.ReadBack), pause: firstPause}
	return c.readBack(ctx, j)
}

// touched gives the read that shows what a write has changed, false where request
// and answer do not tell.
func touched(write upstream.Call, reply jsontext.Value) (upstream.Call, bool) {
	switch {
	case write.UpdateAttachments != nil:
		return readAttachments(write.UpdateAttachments.IDs, "data"), len(write.UpdateAttachments.IDs) > 0
	case write.CreateAttachment != nil:
		ids := createdIDs(reply)
		return readAttachments(ids), len(ids) > 0
	case write.CreateFlagType != nil:
		return readFlagTypes(write.CreateFlagType.Inclusions)
	case write.UpdateFlagTypes != nil:
		return readFlagTypes(write.UpdateFlagTypes.Inclusions)
	}
	return upstream.Call{}, false
}

func readAttachments(ids []int64, without ...string) upstream.Call {
	request := mapping.AttachmentsRequest{Exclude: without}
	for _, id := range ids[:min(len(ids), mostRead)] {
		request.Attachments = append(request.Attachments, strconv.FormatInt(id, 10))
	}
	return upstream.Call{Operation: mapping.OpAttachment, Attachments: &request}
}

// readFlagTypes reads a product in which the flag type is to be seen.
func readFlagTypes(inclusions *mapping.Scopes) (upstream.Call, bool) {
	if inclusions == nil {
		return upstream.Call{}, false
	}
	for _, scope := range *inclusions {
		if scope.Product != "" {
			request := mapping.FlagTypesRequest{Product: scope.Product}
			return upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request}, true
		}
	}
	return upstream.Call{}, false
}

// createdIDs reads the answer of an attachment create.
func createdIDs(reply jsontext.Value) []int64 {
	var answer struct {
		IDs []json.RawMessage `json:"ids"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return nil
	}
	var ids []int64
	for _, text := range answer.IDs {
		if id, ok := mapping.Int(jsontext.Value(text)); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// readBack asks both for what was written, until they show the same or the window
// ends.
func (c *Canary) readBack(ctx context.Context, j *job) bool {
	reference, candidate, reason := c.askBoth(ctx, j)
	if reason != "" {
		c.giveUp(j, reason)
		return false
	}
	j.took, j.paired = took{}, took{} // of a read that no client made
	before := j.first
	j.first, j.second, j.noisy = reference, candidate, false
	j.suspects = c.suspects(j, c.differences(j, reference, candidate))
	left := time.Until(j.readback.until)
	switch {
	case len(j.suspects) == 0:
		c.conclude(j, nil, kindReadBack, OutcomeSame)
		return false
	case left <= 0:
		return c.endReadBack(ctx, j, before)
	}
	pause := min(j.readback.pause, left)
	j.readback.pause *= 2
	if !c.later(j, pause, (*Canary).readBack) {
		c.giveUp(j, DropConfirmFull)
		return false
	}
	return true
}

// endReadBack judges what is not the same when the window is over.
func (c *Canary) endReadBack(ctx context.Context, j *job, before Reply) bool {
	var changed []Difference
	if before.Status != 0 {
		changed = c.contradictions(j, before, j.first)
	}
	judged, reason := c.doubt(ctx, j, j.suspects, changed)
	if reason != "" {
		c.giveUp(j, reason)
		return false
	}
	j.noisy = j.noisy || judged.noisy > 0
	outcome := OutcomeSame
	if judged.moved > 0 {
		outcome = OutcomeTransient
	}
	c.conclude(j, judged.confirmed, kindReadBack, outcome)
	return false
}
