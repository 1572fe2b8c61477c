package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portico/cmd/portico/config"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// journalTool is portico migrate journal.
type journalTool struct {
	*adminClient
	configured *config.Flags
	store      *state.Store
	all        bool
}

// maxListed bounds a list of entries.
const maxListed = 1000

// journalCommand is portico migrate journal. The signature of changes is that of the other commands of portico migrate.
func journalCommand(a *adminClient) *cobra.Command {
	t := &journalTool{adminClient: a}
	list := t.command("list", "print the entries that are not copied", t.list)
	list.Flags().BoolVar(&t.all, "all", false, "print finished entries too")
	change := func(use, short string, do func(*journal.Operator, context.Context, int64) error, done string) *cobra.Command {
		return t.command(use, short, func(ctx context.Context, seq int64) error {
			err := t.signed()
			if err == nil {
				err = do(&journal.Operator{Store: t.store, Actor: t.actor, Reason: t.reason}, ctx, seq)
			}
			return printed(t.adminClient, []byte("{}\n"), err, line(done))
		})
	}
	pause := func(do func(*journal.Operator, context.Context) error) func(*journal.Operator, context.Context, int64) error {
		return func(o *journal.Operator, ctx context.Context, _ int64) error { return do(o, ctx) }
	}
	c := group(&cobra.Command{
		Use: "journal", Short: "show and change what is copied to the other tracker",
		Long: `Work on the store that the configuration names; Portico need not run. An entry is a write of one object by a rule
with replicate. A parked entry stops the writes of its object until retry or skip. start has writes recorded and not
copied until resume, so that the data can be copied in between. All changes need --actor and --reason.`,
	}, list,
		t.command("show SEQ", "print one entry", t.show),
		change("retry SEQ", "have a parked entry copied again", (*journal.Operator).Retry, "It is tried again."),
		change("skip SEQ", "leave out a parked entry for ever", (*journal.Operator).Skip, "It is left out."),
		change("park SEQ", "stop an object at an entry that is not copied yet", (*journal.Operator).Park, "It is parked."),
		change("start", "record writes and pause copying them", pause((*journal.Operator).Start), "Writes are recorded. Copying is paused until: portico migrate journal resume"),
		change("resume", "have copying go on", pause((*journal.Operator).Resume), "Copying goes on."))
	t.configured = config.RegisterFlags(c.PersistentFlags())
	return c
}

// command makes a command that needs the store, and the number of an entry if its use says so.
func (t *journalTool) command(use, short string, do func(ctx context.Context, seq int64) error) *cobra.Command {
	return command(use, short, func(ctx context.Context, args []string) (err error) {
		seq := int64(0)
		if len(args) > 0 {
			if seq, err = strconv.ParseInt(args[0], 10, 64); err != nil {
				return usageError("%q is not the number of an entry", args[0])
			}
		}
		cfg, err := load(t.configured, t.env)
		if err != nil {
			return err
		}
		return inStore(ctx, cfg.State, use == "start", func(store *state.Store) error {
			t.store = store
			return do(ctx, seq)
		})
	})
}

// journalList is what list prints.
type journalList struct {
	Status  journal.Status       `json:"status"`
	Entries []state.JournalEntry `json:"entries"`
}

func (t *journalTool) list(ctx context.Context, _ int64) error {
	status, err := journal.StatusOf(ctx, t.store)
	if err != nil {
		return err
	}
	entries, err := t.store.JournalOf(ctx, maxListed, t.all)
	if err != nil {
		return err
	}
	return t.value(journalList{status, entries}, func(w io.Writer) error {
		paused := ""
		if status.Paused {
			paused = "; copying is paused"
		}
		fmt.Fprintf(w, "%d entries wait, %d have an unknown outcome, %d are parked in %d lanes%s.\n",
			status.Pending, status.Unresolved, status.Parked, status.ParkedLanes, paused)
		for _, loss := range status.Losses {
			fmt.Fprintf(w, "Never copied to %s: %s %s, writes: %d, the last one at %s.\n",
				loss.Receiver, loss.Kind, oneLine(loss.What), loss.Entries, loss.Last.Format(time.RFC3339))
		}
		if len(entries) == 0 {
			return nil
		}
		if len(entries) == maxListed {
			fmt.Fprintf(w, "The oldest %d entries:\n", maxListed)
		}
		fmt.Fprintln(w, "SEQ\tSTATUS\tOBJECT\tOPERATION\tFROM\tTO\tBY\tBEGUN\tWHY")
		for _, e := range entries {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Seq, e.Status, oneLine(e.Lane), e.Operation, e.Target, e.Receiver,
				oneLine(e.Caller), e.Begun.Format(time.RFC3339), oneLine(e.Reason))
		}
		return nil
	})
}

func (t *journalTool) show(ctx context.Context, seq int64) error {
	e, err := t.store.JournalEntry(ctx, seq)
	if err != nil {
		return err
	}
	return t.value(e, says("Entry %d: %s by rule %s\nStatus:\t%s\nObject:\t%s\nMade:\t%s\nFrom:\t%s\nTo:\t%s\nCaller:\t%s\nBegun:\t%s\nFailures:\t%d\nWhy:\t%s\n",
		e.Seq, e.Operation, oneLine(e.Rule), e.Status, oneLine(e.Lane), e.Made, e.Target, e.Receiver, oneLine(e.Caller),
		e.Begun.Format(time.RFC3339), e.Attempts, oneLine(e.Reason)))
}
