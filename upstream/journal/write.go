package journal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// write is a journalled write under way.
type write struct {
	journal  *Journal
	settings *Settings
	intent   Intent
	leases   []string
	entries  []state.JournalEntry
}

// begin commits the intents. It waits while another process writes one of the objects.
func (w *write) begin(ctx context.Context) error {
	for {
		taken, err := w.try(ctx)
		if err != nil || taken {
			return err
		}
		if !pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (w *write) try(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return w.journal.store.BeginJournal(ctx, w.journal.holder, w.settings.lease(), w.entries)
}

// removeContent removes the files of entries that are not recorded, or have nothing left to be done.
func (j *Journal) removeContent(settings *Settings, entries ...state.JournalEntry) {
	for _, e := range entries {
		if err := settings.spool().remove(e.Spool); err != nil {
			j.logger.Warn("a spooled content could not be removed", "cause", err)
		}
	}
}

// done commits the outcome, even if the client has gone.
func (w *write) done(ctx context.Context, response upstream.Response) {
	defer w.journal.leases.unlock(w.leases)
	refused := upstream.NotWritten(response.Err)
	switch {
	case response.Err == nil:
		w.carriedOut(response.Document)
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
			w.journal.shown.put(e.Seq, w.intent.Shown)
		}
	}
	if w.commit(context.WithoutCancel(ctx)) && refused {
		w.journal.removeContent(w.settings, w.entries...)
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

// commit stores the outcome. While the store is away it tries for a while. After that the intent stays, so that the outcome is read back from the
// tracker, or an operator decides.
func (w *write) commit(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		err := w.journal.store.EndJournal(ctx, w.journal.holder, slices.Clone(w.entries))
		if err == nil {
			return true
		}
		if !pause(ctx, 50*time.Millisecond) {
			w.journal.late.Add(1)
			w.journal.logger.Error("the outcome of a write could not be committed; it will be read back", "operation", string(w.intent.Call.Operation), "cause", err)
			return false
		}
	}
}

// reply is what responses to writes say of ids.
type reply struct {
	ID        int64   `json:"id"`
	IDs       []int64 `json:"ids"`
	FlagTypes []struct {
		ID int64 `json:"id"`
	} `json:"flagtypes"`
}

func readReply(document *mapping.Document, settings *Settings) (r reply, err error) {
	text, err := document.Load(settings.Split)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// carriedOut notes what the tracker has done, by the ids in its response.
func (w *write) carriedOut(document *mapping.Document) {
	w.each(state.JournalPending, "")
	if w.intent.Call.UpdateAttachments != nil {
		return
	}
	r, err := readReply(document, w.settings)
	if err != nil {
		w.each(state.JournalParked, "the ids in the response are unreadable: "+err.Error())
		return
	}
	switch call := w.intent.Call; {
	case call.CreateFlagType != nil && r.ID != 0:
		w.entries[0].Made = flagTypeLane(r.ID)
	case call.UpdateFlagTypes != nil:
		// Names may mean other flag types by the time at which this is copied.
		update := *call.UpdateFlagTypes
		update.IDs, update.Names = nil, nil
		for _, one := range r.FlagTypes {
			update.IDs = append(update.IDs, one.ID)
		}
		if len(update.IDs) == 0 {
			w.each(state.JournalRefused, "the tracker has changed nothing")
			return
		}
		if err := w.settings.seal(&w.entries[0], upstream.Call{Operation: call.Operation, UpdateFlagTypes: &update}); err != nil {
			w.each(state.JournalParked, err.Error())
		}
	case call.CreateAttachment != nil && len(r.IDs) == len(w.entries):
		for i, id := range r.IDs {
			w.entries[i].Made = attachmentLane(id)
		}
	case call.CreateAttachment != nil && document.PathWon && len(r.IDs) == 1:
		w.each(state.JournalRefused, "only the bug of the path got the attachment")
		w.entries[0].Status, w.entries[0].Reason, w.entries[0].Made = state.JournalPending, "", attachmentLane(r.IDs[0])
	default:
		w.each(state.JournalParked, fmt.Sprintf("the response names %d new objects, and %d were asked for", len(r.IDs), len(w.entries)))
	}
}
