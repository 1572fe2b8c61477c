package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/switchover"
)

// scenery is what a request is taken through to be explained: the rooms of serve with
// trackers that keep what they would be sent.
type scenery struct {
	asked    map[string]*notSent
	dialects map[string]string
	clients  map[string]*bugzilla.Client
	bases    map[string]*proxy.Target
	// moves is nil where there is one tracker only.
	moves *switchover.Switchover
	told  told
}

// told is what the switchover tells of a request.
type told struct {
	mu            sync.Mutex
	rule, tracker []string
	compared      []string
	looked        []string
}

// newScenery builds the rooms. Close ends them.
func newScenery(ctx context.Context, cfg Config, lookup func(string) (string, bool)) (*scenery, error) {
	s := &scenery{
		asked: map[string]*notSent{}, dialects: map[string]string{},
		clients: map[string]*bugzilla.Client{}, bases: map[string]*proxy.Target{},
	}
	for _, name := range []string{cfg.Primary, cfg.Candidate} {
		if name == "" {
			continue
		}
		if err := s.add(name, cfg.Trackers[name]); err != nil {
			return nil, err
		}
	}
	if cfg.Candidate == "" {
		return s, nil
	}
	callers, err := (&builder{cfg: cfg, lookup: lookup}).callers()
	if err != nil {
		return nil, err
	}
	options := s.options(cfg)
	options.Caller = callers.name
	s.moves, err = switchover.New(ctx, options)
	return s, err
}

// add builds a tracker that is sent nothing.
func (s *scenery) add(name string, settings TrackerConfig) error {
	base, err := trackerBase(name, settings)
	if err != nil {
		return err
	}
	asked, dialect := &notSent{}, settings.Dialect
	if dialect == "auto" {
		dialect = mapping.Bugzilla5().Name // what a tracker counts as until it has told its version
	}
	client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: dialect, Transport: asked})
	if err != nil {
		return err
	}
	s.asked[name], s.dialects[name], s.clients[name] = asked, dialect, client
	s.bases[name] = &proxy.Target{
		Base: base, Transport: asked,
		HeaderCredentials: func(ctx context.Context) bool { return client.Dialect(ctx).HeaderCredentials },
	}
	return nil
}

// options are those of a switchover that goes by the configured rules and looks
// nothing up.
func (s *scenery) options(cfg Config) switchover.Options {
	o := switchover.Options{
		Old: cfg.Primary, New: cfg.Candidate, Table: cfg.table(), CallerNames: sortedKeys(cfg.Callers),
		Trackers: map[string]upstream.Tracker{}, Locate: map[string]switchover.Locator{}, Shadow: &s.told,
		Observer: switchover.Observer{Routed: func(_ mapping.Operation, rule, tracker string) {
			s.told.mu.Lock()
			defer s.told.mu.Unlock()
			s.told.rule, s.told.tracker = append(s.told.rule, rule), append(s.told.tracker, tracker)
		}},
	}
	for name, client := range s.clients {
		o.Trackers[name], o.Locate[name] = client, notLooked{name, &s.told}
	}
	return o
}

// tracker is what the facade asks.
func (s *scenery) tracker(cfg Config) upstream.Tracker {
	if s.moves != nil {
		return s.moves
	}
	return s.clients[cfg.Primary]
}

// choose finds the tracker for a path outside the interface.
func (s *scenery) choose(caller upstream.Caller, write bool) *proxy.Target {
	if s.moves == nil {
		return nil
	}
	return s.bases[s.moves.Passthrough(caller, write)]
}

func (s *scenery) close() {
	if s.moves != nil {
		_ = s.moves.Close() // it has no way to fail
	}
}

// Answered implements upstream.Shadow.
func (t *told) Answered(_ context.Context, _ upstream.Caller, _ upstream.Call, sides upstream.Sides, answer upstream.Answer) *mapping.Document {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.compared = append(t.compared, sides.Other)
	return answer.Document
}

// notLooked is a tracker that is not asked where things belong. It notes the
// question.
type notLooked struct {
	tracker string
	told    *told
}

// need notes a question and gives the error that ends the request there.
func (n notLooked) need(what string) error {
	n.told.mu.Lock()
	defer n.told.mu.Unlock()
	n.told.looked = append(n.told.looked, what+", asked of "+n.tracker)
	return &mapping.Error{
		Code: mapping.CodeUnavailable, Status: http.StatusServiceUnavailable, Reason: mapping.ReasonSwitchover,
		Message: "Nothing is looked up here.",
	}
}

// Bug implements switchover.Locator.
func (n notLooked) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	return mapping.Place{}, n.need("the product and component of bug " + ref)
}

// AttachmentBug implements switchover.Locator.
func (n notLooked) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	return 0, n.need(fmt.Sprintf("the bug of attachment %d", id))
}

// FlagTypePlaces implements switchover.Locator.
func (n notLooked) FlagTypePlaces(_ context.Context, _ upstream.Caller, ids []int64, names []string) ([]string, []mapping.Scopes, error) {
	return nil, nil, n.need(fmt.Sprintf("the products of the flag types %s", strings.TrimSpace(strings.Trim(fmt.Sprint(ids), "[]")+" "+strings.Join(names, " "))))
}

// print tells what the rules say of the request.
func (s *scenery) print(w io.Writer, cfg Config, passing, write bool) {
	if s.moves == nil {
		return
	}
	if len(s.told.looked) > 0 {
		fmt.Fprintf(w, "the rules    need what nothing is sent for here: %s\n", strings.Join(s.told.looked, "; "))
		return
	}
	for i, name := range s.told.rule {
		fmt.Fprintf(w, "rule         %s %s: %s answers\n", name, phasesOf(cfg, name), s.told.tracker[i])
	}
	for _, name := range s.told.compared {
		fmt.Fprintf(w, "compared     %s, by the sample of canary\n", name)
	}
	if passing {
		fmt.Fprintf(w, "rule         of the passthrough: %s answers\n", s.moves.Passthrough(upstream.Caller{}, write))
	}
}

// phasesOf shows the phases of a configured rule.
func phasesOf(cfg Config, name string) string {
	for _, rule := range cfg.table().Rules {
		if rule.Name == name {
			return fmt.Sprintf("(reads %s, writes %s)", rule.Reads, rule.Writes)
		}
	}
	return ""
}
