package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"portico/cmd/portico/config"
	"portico/upstream/state"
	"portico/upstream/switchover/idmap"
)

// idsTool is portico migrate ids.
type idsTool struct {
	*adminClient
	flags *config.Flags
	dsn   string // of the store
	ids   *idmap.Map
}

// idRow is a pair of ids and the line in which it stands, 0 in the store.
type idRow struct {
	state.IDPair
	line int
}

// idColumns are the columns of a file of ids. The last one may be missing.
var idColumns = []string{"kind", "client", "new", "old"}

const (
	// idBatch is how many pairs are added together.
	idBatch = 10_000
	// maxCompared is how many rows, of two keys each, are compared with the store together.
	maxCompared = 2500
)

// idsCommand is portico migrate ids.
func idsCommand(a *adminClient) *cobra.Command {
	t := &idsTool{adminClient: a}
	c := group(&cobra.Command{
		Use: "ids", Short: "show and change which ids two trackers have for the same objects",
		Long: "Work on the store that the configuration names; Portico need not run. FILE is CSV with the header\n" +
			"kind,client,new,old: the kind of an object, the id that clients know, and its id at the candidate or, if it was\n" +
			"created at the candidate, its id at the primary. The last column may be missing. import checks the whole file before it adds\n" +
			"anything, and can be repeated. check also lists ids that are missing between others.",
	},
		t.command("import FILE", "add the ids in FILE to the store", t.add),
		t.command("export [FILE]", "write the ids of the store to standard output, or to FILE", t.export),
		t.command("check [FILE]", "print what is wrong or missing in the ids of the store, or of FILE", t.check))
	t.flags = config.RegisterFlags(c.PersistentFlags())
	return c
}

// command makes a command for a configuration with ids.
func (t *idsTool) command(use, short string, do func(ctx context.Context, file string) error) *cobra.Command {
	return command(use, short, func(ctx context.Context, args []string) error {
		cfg, err := load(t.flags, t.env)
		if err != nil {
			return err
		}
		if len(cfg.Switchover.IDs) == 0 {
			return errors.New("the configuration has no switchover.ids")
		}
		t.dsn, t.ids = cfg.State, idmap.New(idmap.Options{Settings: cfg.Switchover.Settings})
		return do(ctx, strings.Join(args, ""))
	})
}

// inStore works on the store of the configuration, which it makes if that is asked for. A command that tells of what is there makes no new one,
// and does not say that nothing waits.
func inStore(ctx context.Context, dsn string, make bool, work func(*state.Store) error) error {
	if found, err := state.Look(ctx, dsn); err != nil || found.Version == 0 && !make {
		return cmp.Or(err, fmt.Errorf("there is no store at %s yet", config.Printable(dsn)))
	}
	store, err := state.Open(ctx, dsn)
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// add is portico migrate ids import.
func (t *idsTool) add(ctx context.Context, file string) error {
	rows, err := t.rows(ctx, file)
	if err != nil {
		return err
	}
	var added atomic.Int64
	shown := t.env.progress(func() string { return fmt.Sprintf("%d of %d ids are kept", added.Load(), len(rows)) })
	defer shown.stop()
	err = inStore(ctx, t.dsn, true, func(store *state.Store) error {
		for some := range slices.Chunk(rows, idBatch) {
			pairs := make([]state.IDPair, len(some))
			for i, row := range some {
				pairs[i] = row.IDPair
			}
			if err := store.AddIDs(ctx, pairs); err != nil {
				return fmt.Errorf("import %s, of which %d ids are kept: %w", file, added.Load(), err)
			}
			added.Add(int64(len(some)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	shown.stop()
	return t.value(idReport{IDs: len(rows)}, says("%d ids are kept.\n", len(rows)))
}

// idReport is what import and check print. Gaps are ids that are missing between others, and Problems are in the way of an import.
type idReport struct {
	IDs      int      `json:"ids"`
	Gaps     []string `json:"gaps,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// export is portico migrate ids export.
func (t *idsTool) export(ctx context.Context, file string) error {
	return inStore(ctx, t.dsn, false, func(store *state.Store) error {
		to := t.env.stdout
		if file != "" {
			made, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("export ids: %w", err)
			}
			defer made.Close()
			to = made
		}
		out := csv.NewWriter(to)
		err := out.Write(idColumns)
		if err == nil {
			err = store.EachID(ctx, func(p state.IDPair) error {
				row := []string{p.Kind, strconv.FormatInt(p.Client, 10), strconv.FormatInt(p.Native, 10), ""}
				if p.Side == string(idmap.OldSide) {
					row[2], row[3] = row[3], row[2]
				}
				return out.Write(row)
			})
		}
		out.Flush()
		return cmp.Or(err, out.Error())
	})
}

// check is portico migrate ids check.
func (t *idsTool) check(ctx context.Context, file string) error {
	rows, err := t.rows(ctx, file)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b idRow) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Client, b.Client)) })
	report := idReport{IDs: len(rows)}
	for i, row := range rows {
		if i == 0 || rows[i-1].Kind != row.Kind || rows[i-1].Side != row.Side || rows[i-1].Client == row.Client-1 {
			continue
		}
		report.Gaps = append(report.Gaps, fmt.Sprintf("%s%s: no ids from %d to %d", row.place(file), row.Kind, rows[i-1].Client+1, row.Client-1))
	}
	return t.value(report, says("%s%d ids are good.\n", strings.Join(append(report.Gaps, ""), "\n"), len(rows)))
}

// place begins a message about a row.
func (r idRow) place(file string) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", file, r.line)
}

// rows reads the ids of a file or, if it has no name, of the store. It prints what is wrong with them.
func (t *idsTool) rows(ctx context.Context, file string) (rows []idRow, err error) {
	var problems []string
	report := func(row idRow, problem error) {
		problems = append(problems, fmt.Sprintf("%s%v", row.place(file), problem))
	}
	lines := map[state.IDKey]int{}
	add := func(row idRow) {
		if err := t.ids.CheckPair(row.IDPair); err != nil {
			report(row, err)
		}
		for _, key := range row.Keys() {
			if first, twice := lines[key]; twice {
				report(row, fmt.Errorf("%s: line %d has one of these ids", row.IDPair, first))
			}
			lines[key] = row.line
		}
		rows = append(rows, row)
	}
	if file == "" {
		err = inStore(ctx, t.dsn, false, func(store *state.Store) error {
			return store.EachID(ctx, func(p state.IDPair) error {
				add(idRow{IDPair: p})
				return nil
			})
		})
	} else if err = readIDs(file, add, report); err == nil {
		err = t.contradictions(ctx, rows, report)
	}
	if err != nil || len(problems) == 0 {
		return rows, err
	}
	if t.isText() {
		fmt.Fprintln(t.env.stderr, strings.Join(problems, "\n"))
	} else {
		err = t.value(idReport{IDs: len(rows), Problems: problems}, nil)
	}
	return rows, cmp.Or(err, error(exitError{status: exitFailed}))
}

// contradictions reports the rows that contradict pairs of the store, if there is one.
func (t *idsTool) contradictions(ctx context.Context, rows []idRow, report func(idRow, error)) error {
	if found, err := state.Look(ctx, t.dsn); err != nil || found.Version == 0 {
		return err
	}
	return inStore(ctx, t.dsn, false, func(store *state.Store) error {
		for some := range slices.Chunk(rows, maxCompared) {
			var keys []state.IDKey
			for _, row := range some {
				keys = append(keys, row.Keys()...)
			}
			kept, err := store.IDs(ctx, keys)
			if err != nil {
				return err
			}
			for i, key := range keys {
				if other, ok := kept[key]; ok && other != some[i/2].IDPair {
					report(some[i/2], &state.IDConflictError{Kept: other, New: some[i/2].IDPair})
				}
			}
		}
		return nil
	})
}

// byteOrderMark begins files that spreadsheet programs write.
const byteOrderMark = "\ufeff"

// readIDs reads a file of ids.
func readIDs(file string, add func(idRow), report func(idRow, error)) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(content), byteOrderMark)))
	header, err := in.Read()
	if err != nil || !slices.Equal(header, idColumns) && !slices.Equal(header, idColumns[:3]) {
		return fmt.Errorf("read ids: %s does not begin with the line %s", file, strings.Join(idColumns, ","))
	}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return fmt.Errorf("read ids: %s: %w", file, err)
		}
		row := idRow{}
		row.line, _ = in.FieldPos(0)
		if row.IDPair, err = parseIDs(append(record, "", "", "")); err != nil {
			report(row, err)
			continue
		}
		add(row)
	}
}

// parseIDs reads the columns of one row.
func parseIDs(record []string) (state.IDPair, error) {
	side, text := idmap.NewSide, record[2]
	if text == "" {
		side, text = idmap.OldSide, record[3]
	}
	client, err := strconv.ParseInt(record[1], 10, 64)
	native, bad := strconv.ParseInt(text, 10, 64)
	if err != nil || bad != nil || record[2] != "" && record[3] != "" || strings.Join(record[4:], "") != "" {
		return state.IDPair{}, fmt.Errorf("%q is not a kind, an id that clients know and one id at a tracker", strings.TrimRight(strings.Join(record, ","), ","))
	}
	return state.IDPair{Kind: record[0], Client: client, Side: string(side), Native: native}, nil
}
