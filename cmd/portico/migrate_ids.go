package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
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

// idColumns are the columns of a file of ids. The last one may be missing.
var idColumns = []string{"kind", "client", "new", "old"}

// idBatch is how many pairs are added together.
const idBatch = 10_000

// idsCommand is portico migrate ids.
func idsCommand(a *adminClient) *cobra.Command {
	t := &idsTool{adminClient: a}
	c := group(&cobra.Command{
		Use: "ids", Short: "show and change which ids two trackers have for the same objects",
		Long: `Work on the store that the configuration names. Portico need not run.

FILE is CSV with the header kind,client,new,old: the kind of an object, the id that clients know, its id at the
candidate, and for objects created at the candidate the id at the primary. The last column may be missing.
import checks the whole file before it adds anything, and can be repeated. check also lists ids that are missing
between others.`,
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

// errNoStore says that there is nothing to work on.
var errNoStore = errors.New("there is no store")

// inStore works on the store of the configuration, which it creates if that is asked for. A command that tells of what is there creates no new one,
// and does not say that nothing waits.
func inStore(ctx context.Context, dsn string, create bool, work func(*state.Store) error) error {
	if found, err := state.Inspect(ctx, dsn); err != nil || found.Version == 0 && !create {
		return cmp.Or(err, fmt.Errorf("%w at %s yet", errNoStore, config.Printable(dsn)))
	}
	store, err := state.Open(ctx, dsn)
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// add is portico migrate ids import.
func (t *idsTool) add(ctx context.Context, file string) error {
	list, err := t.list(ctx, file)
	if err != nil {
		return err
	}
	var added atomic.Int64
	shown := t.env.progress(func() string { return fmt.Sprintf("%d of %d ids are kept", added.Load(), len(list.pairs)) })
	defer shown.stop()
	err = inStore(ctx, t.dsn, true, func(store *state.Store) error {
		for some := range slices.Chunk(list.pairs, idBatch) {
			if err := store.AddIDs(ctx, some); err != nil {
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
	return t.value(idReport{IDs: len(list.pairs)}, says("%d ids are kept.\n", len(list.pairs)))
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
		if file == "" {
			return writeIDs(ctx, store, t.env.stdout)
		}
		to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("export ids: %w", err)
		}
		return errors.Join(writeIDs(ctx, store, to), to.Close())
	})
}

// writeIDs writes the ids of a store as CSV.
func writeIDs(ctx context.Context, store *state.Store, to io.Writer) error {
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
}

// check is portico migrate ids check.
func (t *idsTool) check(ctx context.Context, file string) error {
	list, err := t.list(ctx, file)
	if err != nil {
		return err
	}
	slices.SortFunc(list.pairs, func(a, b state.IDPair) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Client, b.Client))
	})
	report := idReport{IDs: len(list.pairs)}
	var before state.IDPair
	for _, pair := range list.pairs {
		if before.Kind == pair.Kind && before.Side == pair.Side && before.Client != pair.Client-1 {
			report.Gaps = append(report.Gaps, fmt.Sprintf("%s%s: no ids from %d to %d", list.place(list.line(pair)), pair.Kind, before.Client+1, pair.Client-1))
		}
		before = pair
	}
	return t.value(report, says("%s%d ids are good.\n", strings.Join(append(report.Gaps, ""), "\n"), report.IDs))
}

// list reads the ids of a file or, if it has no name, of the store. It prints what is wrong with them.
func (t *idsTool) list(ctx context.Context, file string) (l *idList, err error) {
	l = &idList{file: file, check: t.ids.CheckPair, lines: map[state.IDKey]int{}}
	if file == "" {
		err = inStore(ctx, t.dsn, false, func(store *state.Store) error {
			return store.EachID(ctx, func(p state.IDPair) error {
				l.add(p, 0)
				return nil
			})
		})
	} else if err = l.read(); err == nil {
		err = inStore(ctx, t.dsn, false, func(store *state.Store) error {
			kept, err := store.IDs(ctx, slices.Collect(maps.Keys(l.lines)))
			for _, pair := range l.pairs {
				for _, key := range pair.Keys() {
					if other, ok := kept[key]; ok && other != pair {
						l.report(l.line(pair), &state.IDConflictError{Kept: other, New: pair})
					}
				}
			}
			return err
		})
		if errors.Is(err, errNoStore) {
			err = nil
		}
	}
	if err != nil || len(l.problems) == 0 {
		return l, err
	}
	if t.isText() {
		fmt.Fprintln(t.env.stderr, strings.Join(l.problems, "\n"))
	} else {
		err = t.value(idReport{IDs: len(l.pairs), Problems: l.problems}, nil)
	}
	return l, cmp.Or(err, error(exitError{status: exitFailed}))
}

// idList is the pairs of ids in a file or, if it has no name, in the store, and what is wrong with them.
type idList struct {
	file     string
	check    func(state.IDPair) error
	pairs    []state.IDPair
	lines    map[state.IDKey]int // of the file
	problems []string
}

func (l *idList) line(pair state.IDPair) int { return l.lines[pair.Keys()[0]] }

// place begins a message about a line.
func (l *idList) place(line int) string {
	if l.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", l.file, line)
}

func (l *idList) report(line int, problem error) {
	l.problems = append(l.problems, l.place(line)+problem.Error())
}

func (l *idList) add(pair state.IDPair, line int) {
	if err := l.check(pair); err != nil {
		l.report(line, err)
	}
	for _, key := range pair.Keys() {
		if first, twice := l.lines[key]; twice {
			l.report(line, fmt.Errorf("%s: line %d has one of these ids", pair, first))
		}
		l.lines[key] = line
	}
	l.pairs = append(l.pairs, pair)
}

// byteOrderMark begins files that spreadsheet programs write.
const byteOrderMark = "\ufeff"

// read reads the file.
func (l *idList) read() error {
	content, err := os.ReadFile(l.file)
	if err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(content), byteOrderMark)))
	header, err := in.Read()
	if err != nil || !slices.Equal(header, idColumns) && !slices.Equal(header, idColumns[:3]) {
		return fmt.Errorf("read ids: %s does not begin with the line %s", l.file, strings.Join(idColumns, ","))
	}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return fmt.Errorf("read ids: %s: %w", l.file, err)
		}
		line, _ := in.FieldPos(0)
		if pair, err := parseIDs(append(record, "", "", "")); err != nil {
			l.report(line, err)
		} else {
			l.add(pair, line)
		}
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
