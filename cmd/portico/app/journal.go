package app

import (
	"context"
	"fmt"
	"os"

	"portico/cmd/portico/config"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// openJournal makes the journal at the first call where the configuration has a key for it. Later ones give it new settings.
func (rt *Runtime) openJournal(lookup config.Variables) error {
	settings := &rt.cfg.Switchover.Journal
	keys, err := settings.Keys(lookup)
	if err != nil {
		return fmt.Errorf("switchover.journal: %w", err)
	}
	if keys == nil || rt.resources.dry != nil {
		return nil
	}
	if err := os.MkdirAll(settings.Spool, 0o700); err != nil {
		return fmt.Errorf("switchover.journal.spool: %w", err)
	}
	callers, err := rt.journalCallers(lookup)
	if err != nil {
		return err
	}
	next := journal.Settings{
		Trackers: map[string]upstream.Tracker{}, Caller: callers, Keys: keys, Spool: settings.Spool, MaxInline: int64(settings.MaxInline),
		BestEffort: settings.Mode == "best-effort", Keep: settings.Keep, Timeout: rt.maxCallTime(), Settle: 2 * rt.maxCallTime(),
		MaxFailures: settings.Failures, Workers: settings.Workers, Split: rt.replySplit(),
	}
	for name, t := range rt.trackers {
		next.Trackers[name] = rt.translated(name, t.front())
	}
	if rt.ids != nil {
		next.Pairs = idPairs{rt}
	}
	if rt.resources.journal == nil {
		rt.resources.journal = journal.New(journal.Options{
			Store: rt.resources.store, Settings: next, Logger: rt.logger, Observe: rt.resources.metrics.Journal,
		})
	} else {
		rt.resources.journal.Set(next)
	}
	return nil
}

// journalCallers returns the caller that a tracker is shown for a write of a caller with a name: its key there, or that of the service.
func (rt *Runtime) journalCallers(lookup config.Variables) (func(tracker, name string) (upstream.Caller, bool, bool), error) {
	services, keys := map[string]string{}, map[string]map[string]string{rt.cfg.Primary: {}, rt.cfg.Candidate: {}}
	read := func(into map[string]string, name string, secret config.Secret) error {
		key, err := secret.Read(lookup)
		into[name] = string(key)
		return err
	}
	settings := &rt.cfg.Switchover.Journal
	if err := read(services, rt.cfg.Candidate, settings.ServiceKey); err != nil {
		return nil, err
	}
	if err := read(services, rt.cfg.Primary, settings.PrimaryServiceKey); err != nil {
		return nil, err
	}
	for name, caller := range rt.cfg.Callers {
		if err := read(keys[rt.cfg.Primary], name, caller.Key); err != nil {
			return nil, err
		}
		if err := read(keys[rt.cfg.Candidate], name, caller.ShadowKey); err != nil {
			return nil, err
		}
	}
	return func(tracker, name string) (caller upstream.Caller, own, ok bool) {
		key := keys[tracker][name]
		if own = key != ""; !own {
			key = services[tracker]
		}
		return upstream.Caller{Credentials: upstream.Credentials{APIKey: key}}, own, key != ""
	}, nil
}

// idPairs keeps the ids of copies in the map of ids.
type idPairs struct{ rt *Runtime }

// Pair implements journal.Pairs.
func (p idPairs) Pair(ctx context.Context, kind string, client int64, tracker string, shown int64) error {
	return p.rt.ids.PairShown(ctx, idmap.Kind(kind), client, p.rt.side(tracker), shown)
}

// switchoverJournal is what the switchover records writes with, nil without a key.
func (rt *Runtime) switchoverJournal() switchover.Journal {
	if rt.resources.journal == nil {
		return nil
	}
	return rt.resources.journal
}
