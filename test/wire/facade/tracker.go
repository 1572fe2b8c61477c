package facade

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"portico/mapping"
	"portico/test/wire"
)

// Tracker is a real tracker whose exchanges are recorded.
type Tracker struct {
	// Title is its name in docs/evidence/COMPATIBILITY.md, File the name of the recordings in test/wire/testdata.
	Title, File string
	// Dialect is the one that Portico has for it.
	Dialect string
	// Accounts explain the responses that differ.
	Accounts []Account
	// Headers are those that differ on every response.
	Headers []string
}

// Trackers lists the trackers, Bugzilla 5.2 first.
func Trackers() []Tracker {
	mojo := slices.Concat(headersApart, headersOfMojo)
	return []Tracker{
		{"Bugzilla 5.2", "bugzilla-5.2.jsonl", mapping.Bugzilla5().Name, accountsOf52(), headersApart},
		{"BMO", "bmo.jsonl", mapping.BMO().Name, accountsOfBMO(), mojo},
		{"Harmony", "harmony.jsonl", mapping.BMO().Name, accountsOfHarmony(), mojo},
	}
}

// load reads the recordings from a folder. Clients ask Portico for flag types under the name that the interface has.
func (t *Tracker) load(dir string) ([]wire.Exchange, error) {
	exchanges, err := wire.Load(filepath.Join(dir, t.File))
	for i := range exchanges {
		path := &exchanges[i].Request.Path
		*path = strings.Replace(*path, "/flag_types/", "/flag_type/", 1)
	}
	return exchanges, err
}

// Replayed is a tracker with its recordings and what became of those whose response is known.
type Replayed struct {
	Tracker
	Exchanges []wire.Exchange
	Results   []Result
}

// Replay runs the recordings in a folder through Portico.
func (t *Tracker) Replay(ctx context.Context, dir string) (Replayed, error) {
	exchanges, err := t.load(dir)
	if err != nil {
		return Replayed{}, err
	}
	environment, err := Open(t.Dialect)
	if err != nil {
		return Replayed{}, err
	}
	results := environment.Run(ctx, exchanges, t.Accounts, t.Headers)
	return Replayed{*t, exchanges, results}, environment.Close()
}
