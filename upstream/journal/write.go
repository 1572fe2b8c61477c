package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/state"
)

// write is a journalled write under way.
type write struct {
	journal  *Journal
	settings *Settings
	intent   Intent
	of       operation
	leases   []string
	entries  []state.JournalEntry
}

// prepare makes the entries of a write, one for each object. A *mapping.Error says that the write must not pass.
func (w *write) prepare() error {
	objects, err := objectsOf(w.intent)
	if err != nil {
		return Unavailable(err)
	}
	w.of = objects[0]
	file, err := w.settings.spoolContent(w.of.content, len(objects))
	if err != nil {
		return err
	}
	recorded := 0
	for _, one := range objects {
		e := state.JournalEntry{
			Lane: one.lane, Operation: w.intent.Call.Operation, Target: w.intent.Target, Receiver: w.intent.Receiver,
			Rule: w.intent.Rule, Caller: w.intent.Caller, Spool: file,
		}
		err = errors.Join(err, w.settings.seal(&e, one))
		w.entries = append(w.entries, e)
		recorded += len(e.Request)
		if recorded > maxRecorded {
			return mapping.NewError(mapping.CodeTooLarge, mapping.ReasonTooLarge,
				"This write is too long to be recorded for so many objects, so nothing was changed. Name fewer of them.")
		}
	}
	w.leases = state.WriteLeases(w.entries)
	return err
}

// begin commits the intents. It waits for the turn of the caller, and while one of the objects is written.
func (w *write) begin(ctx context.Context) error {
	leases, turn := &w.journal.leases, w.journal.accepted.turn(w.intent.Shown)
	if err := leases.lock(ctx, turn); err != nil {
		return err
	}
	if err := leases.lock(ctx, w.leases); err != nil {
		leases.unlock(turn)
		return err
	}
	w.leases = append(w.leases, turn...)
	taken, err := w.try(ctx)
	for !taken && err == nil && upstream.Pause(ctx, 20*time.Millisecond) { // another process has one of the leases
		taken, err = w.try(ctx)
	}
	if taken {
		return nil
	}
	leases.unlock(w.leases)
	return cmp.Or(err, ctx.Err())
}

// try goes on when the client hangs up, or the store could have an intent that was not sent.
func (w *write) try(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return w.journal.store.BeginJournal(ctx, w.journal.holder, w.settings.lease(), w.entries)
}

// unrecorded gives up a write whose intents were not committed. In the mode best-effort it passes, unless it is refused or its client has gone.
func (w *write) unrecorded(ctx context.Context, cause error) (Done, error) {
	j := w.journal
	if len(w.entries) > 0 && w.entries[0].Seq == 0 { // or the store may have them
		j.removeContent(w.settings, w.entries[0].Spool)
	}
	if refusal, refused := errors.AsType[*mapping.Error](cause); refused {
		return nil, refusal
	}
	if ctx.Err() == nil && w.settings.Mode == "best-effort" {
		j.logger.Warn("a write passes without the journal; going back would lose it",
			"operation", string(w.intent.Call.Operation), "rule", w.intent.Rule, "cause", cause)
		return j.lost(ctx, w.intent, state.LossMissed), nil
	}
	return nil, Unavailable(cmp.Or(ctx.Err(), cause))
}

// removeContent removes a file, if it has a name, of entries that are not recorded, or have nothing left to be done.
func (j *Journal) removeContent(settings *Settings, file string) {
	if err := settings.spool().remove(file); err != nil {
		j.logger.Warn("a spooled content could not be removed", "cause", err)
	}
}

// done commits the outcome, even if the client has gone.
func (w *write) done(ctx context.Context, response upstream.Response) {
	defer w.journal.leases.unlock(w.leases)
	w.journal.accepted.note(w.intent.Shown, response.Err)
	refused := upstream.NotWritten(response.Err)
	switch {
	case response.Err == nil:
		w.each(state.JournalPending, "")
		if err := w.carriedOut(response.Document); err != nil {
			w.each(state.JournalParked, err.Error())
		}
	case refused:
		w.each(state.JournalRefused, "")
	default:
		w.each(state.JournalBegun, "the outcome is unknown: "+response.Err.Error())
		for i := range w.entries {
			w.entries[i].Next = time.Now().Add(w.settings.Settle)
		}
	}
	for _, e := range w.entries {
		if e.Status == state.JournalPending {
			w.journal.callers.Set(e.Seq, new(w.intent.Shown))
		}
	}
	if w.commit(context.WithoutCancel(ctx), response) && refused {
		w.journal.removeContent(w.settings, w.entries[0].Spool)
	}
	for _, e := range w.entries {
		w.journal.poke(e.Lane)
	}
}

func (w *write) each(status state.JournalStatus, reason string) {
	for i := range w.entries {
		w.entries[i].Status, w.entries[i].Reason = status, reason
	}
}

// commit stores the outcome, or counts a write whose intent the store has lost. While the store is away it tries for a while. After that the intent
// stays, so that the outcome is read back from the tracker, or an operator decides.
func (w *write) commit(ctx context.Context, response upstream.Response) bool {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, storeTimeout) // its connection may hang
		err := w.journal.store.EndJournal(attempt, w.journal.holder, slices.Clone(w.entries))
		cancel()
		if err == nil {
			return true
		}
		if errors.Is(err, state.ErrNotFound) { // it has failed over without its last changes, or was restored
			missed := w.journal.lost(ctx, w.intent, state.LossMissed)
			missed(ctx, response)
			return true
		}
		if !upstream.Pause(ctx, 50*time.Millisecond) {
			w.journal.late.Add(1)
			w.journal.logger.Error("the outcome of a write could not be committed; it will be read back", "operation", string(w.intent.Call.Operation), "cause", err)
			return false
		}
	}
}

// ReplyIDs returns the ids that the response to a write names.
func ReplyIDs(document *mapping.Document, split jsonblob.SplitOptions) ([]int64, error) {
	var reply struct {
		ID        int64   `json:"id"`
		IDs       []int64 `json:"ids"`
		FlagTypes []struct {
			ID int64 `json:"id"`
		} `json:"flagtypes"`
	}
	text, err := document.Load(split)
	if err == nil {
		err = json.Unmarshal(text, &reply)
	}
	if err != nil {
		return nil, fmt.Errorf("the ids in the response are unreadable: %w", err)
	}
	for _, one := range reply.FlagTypes {
		reply.IDs = append(reply.IDs, one.ID)
	}
	if reply.ID != 0 {
		reply.IDs = append(reply.IDs, reply.ID)
	}
	return reply.IDs, nil
}

// carriedOut notes what the tracker has done, by the ids in its response.
func (w *write) carriedOut(document *mapping.Document) error {
	create := w.intent.Call.Operation.IsCreate()
	if !create && w.of.byIDs == nil {
		return nil
	}
	ids, err := ReplyIDs(document, w.settings.Split)
	switch {
	case err != nil:
	case create:
		w.created(ids, document.PathWon)
	case len(ids) == 0:
		w.each(state.JournalRefused, "the tracker has changed nothing")
	default:
		err = w.settings.seal(&w.entries[0], w.of.byIDs(ids))
	}
	return err
}

// created notes the new objects, one for each entry. Where the bug of the path has won, only the first of several bugs has got the attachment: the
// lanes of the others must not stop, since the caller may have no access to them.
func (w *write) created(ids []int64, pathWon bool) {
	switch {
	case len(ids) == len(w.entries):
	case pathWon && len(ids) == 1:
		w.each(state.JournalRefused, "only the bug of the path got the attachment")
		w.entries[0].Status, w.entries[0].Reason = state.JournalPending, ""
	default:
		w.each(state.JournalParked, fmt.Sprintf("the response names %d new objects, and %d were asked for", len(ids), len(w.entries)))
		return
	}
	for i, id := range ids {
		w.entries[i].Made = laneOf(w.of.kind, id)
	}
}
