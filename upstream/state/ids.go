package state

import (
	"context"
	"fmt"
	"slices"
)

// IDPair says under which id one side has an object that clients know by another one.
type IDPair struct {
	// Kind is the kind of object, such as attachment.
	Kind string
	// Client is the id that clients know.
	Client int64
	// Side names the tracker that has the object under Native.
	Side   string
	Native int64
}

// String names the pair in errors.
func (p IDPair) String() string {
	return fmt.Sprintf("%s %d is %d at the %s tracker", p.Kind, p.Client, p.Native, p.Side)
}

// IDKey selects at most one pair.
type IDKey struct {
	Kind string
	// Side says that ID is the native id there. With an empty side ID is the one that clients know.
	Side string
	ID   int64
}

// Keys are the two keys that select the pair.
func (p IDPair) Keys() []IDKey {
	return []IDKey{{p.Kind, "", p.Client}, {p.Kind, p.Side, p.Native}}
}

// IDConflictError says that a pair contradicts one that is kept.
type IDConflictError struct{ Kept, New IDPair }

// Error implements error.
func (e *IDConflictError) Error() string {
	return e.New.String() + " contradicts what is kept: " + e.Kept.String()
}

// maxIDRows bounds the pairs of one statement, for the sake of its parameters.
const maxIDRows = 1000

// AddIDs adds pairs, all of them or, with an error, none. A pair that is kept already is no error. A pair that contradicts a kept one, or
// another one of the list, is an *IDConflictError.
func (s *Store) AddIDs(ctx context.Context, pairs []IDPair) error {
	return s.write(ctx, "adding ids", func(tx *session) { tx.addIDs(pairs) })
}

func (s *session) addIDs(pairs []IDPair) {
	for some := range slices.Chunk(pairs, maxIDRows) {
		var args []any
		for _, p := range some {
			args = append(args, p.Kind, p.Client, p.Side, p.Native)
		}
		if int(s.exec("INSERT INTO portico_ids (kind, client, side, native) VALUES "+repeated("(?, ?, ?, ?)", len(some))+" ON CONFLICT DO NOTHING", args...)) < len(some) {
			s.contradicted(some)
		}
	}
}

// contradicted fails for the first of the pairs that is not kept as it is.
func (s *session) contradicted(pairs []IDPair) {
	var keys []IDKey
	for _, p := range pairs {
		keys = append(keys, p.Keys()...)
	}
	kept := s.ids(keys)
	for i, key := range keys {
		if other, ok := kept[key]; ok && other != pairs[i/2] {
			s.fail(&IDConflictError{Kept: other, New: pairs[i/2]})
		}
	}
}

// IDs returns the pairs that the keys select, by both of their own keys.
func (s *Store) IDs(ctx context.Context, keys []IDKey) (map[IDKey]IDPair, error) {
	in := s.session(ctx)
	found := in.ids(keys)
	return found, failed("reading ids", in.err)
}

func (s *session) ids(keys []IDKey) map[IDKey]IDPair {
	found := map[IDKey]IDPair{}
	for some := range slices.Chunk(keys, 2*maxIDRows) {
		var args []any
		for _, key := range some {
			args = append(args, key.Kind, key.Side, key.ID)
		}
		for _, p := range list[IDPair](s, "WITH keys (of_kind, of_side, id) AS (VALUES "+repeated("(?, ?, CAST(? AS BIGINT))", len(some))+`)
			SELECT kind, client, side, native FROM keys JOIN portico_ids ON kind = of_kind AND client = id WHERE of_side = '' UNION ALL
			SELECT kind, client, side, native FROM keys JOIN portico_ids ON kind = of_kind AND side = of_side AND native = id`, args...) {
			for _, key := range p.Keys() {
				found[key] = p
			}
		}
	}
	return found
}

// EachID calls visit for every pair, by kind and by the id that clients know, until visit returns an error.
func (s *Store) EachID(ctx context.Context, visit func(IDPair) error) error {
	in := s.session(ctx)
	each(in, visit, "SELECT kind, client, side, native FROM portico_ids ORDER BY kind, client")
	return failed("reading ids", in.err)
}
