package app

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/canary"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// openCandidate builds what a second tracker needs: the store, its own components, the comparison and the switchover.
func (rt *Runtime) openCandidate(ctx context.Context, lookup config.Variables) error {
	var err error
	if rt.store, err = rt.resources.openStore(ctx, rt.cfg.State, rt.logger); err != nil {
		return err
	}
	if err := rt.openTracker(rt.cfg.Candidate, lookup); err != nil {
		return err
	}
	if len(rt.cached) == 2 { // a write to one tracker may reach the other in another way
		follow, primary, candidate := rt.cfg.Switchover.Follow, rt.cached[0].cache, rt.cached[1].cache
		primary.CopiedTo(follow, candidate)
		candidate.CopiedTo(follow, primary)
	}
	known, err := readCallers(rt.cfg.Callers, lookup)
	if err != nil {
		return err
	}
	if rt.resources.dry == nil {
		if err := rt.openCanary(known, lookup); err != nil {
			return err
		}
	}
	rt.switchover, err = rt.resources.openSwitchover(ctx, switchover.Options{
		Old: rt.cfg.Primary, New: rt.cfg.Candidate, Store: rt.store, Settings: rt.switchoverSettings(known),
	})
	return err
}

// openCanary builds the comparison. It shares nothing with what clients wait for: each tracker gets a second client with connections,
// limits and breakers of its own.
func (rt *Runtime) openCanary(known callers, lookup config.Variables) error {
	settings := rt.cfg.Canary
	trackers := map[string]upstream.Tracker{}
	for name, t := range rt.trackers {
		if err := rt.openShadow(t); err != nil {
			return err
		}
		trackers[name] = t.shadow
	}
	service, err := settings.ServiceKey.Read(lookup)
	if err != nil {
		return err
	}
	rules, _ := compare.NewRules(settings.Equivalences, time.Now()) // config has reported problems
	rt.Canary = canary.New(canary.Options{
		Trackers: trackers, Store: rt.store, Reference: rt.cfg.Primary, Candidate: rt.cfg.Candidate,
		Sampling: canary.Sampling{Default: settings.Sample, Operations: settings.Operations, Sticky: settings.Sticky},
		Workers:  settings.Workers, Queue: settings.Queue, PerSecond: settings.PerSecond, Timeout: settings.Timeout,
		MaxBody: int64(settings.MaxBody), Split: rt.replySplit(), ConfirmAfter: settings.ConfirmAfter, NoiseShare: settings.Noise,
		Samples: settings.KeepSamples, Caller: known.forComparison(&rt.cfg, string(service)), Rules: rules,
		CallerName: known.name, Plan: rt.planWrite, Address: rt.readAddress,
		Refuses: func(tracker string) bool { return rt.stacks[shadowLabel(tracker)].Reads.Refuses() },
		Follows: settings.Follows, ReadBack: settings.ReadBack, Isolated: settings.Isolated, Marker: settings.Marker,
		Target: settings.Target / 100, Latency: verdict.LatencyTarget{Ratio: settings.Latency.Ratio, Slack: settings.Latency.Slack},
		Logger: rt.logger, Observer: canaryObserver{rt.resources.metrics},
	})
	rt.onClose(func() {
		if err := rt.Canary.Close(); err != nil {
			rt.logger.Warn("the last findings could not be stored", "cause", err)
		}
	})
	return nil
}

// shadowLabel is the label of a tracker's connections for comparisons.
func shadowLabel(tracker string) string { return "shadow:" + tracker }

// openShadow builds the client of a tracker for comparisons.
func (rt *Runtime) openShadow(t *tracker) error {
	workers, label := rt.cfg.Canary.Workers, shadowLabel(t.name)
	options := transport.Options{
		Base:  transport.BaseOptions{MaxIdleConns: workers, HeaderTimeout: rt.cfg.Canary.Timeout},
		Limit: transport.LimitOptions{Slots: 2 * workers, ReserveWrites: -1, Queue: 2 * workers},
	}
	if t.name == rt.cfg.Candidate {
		options.Tries = 1 // a retry would hide a failure of the candidate
	}
	stack, err := rt.openStack(t, label, options)
	if err != nil {
		return err
	}
	t.shadow, err = rt.newClient(t, label, shadowed{stack})
	return err
}

// shadowed gives calls the lowest priority, and ends responses of which only a part is read.
type shadowed struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s shadowed) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := transport.With(r.Context(), func(c *transport.Call) { c.Shadow, c.MaxBody = true, upstream.MaxResponse(r.Context()) })
	return s.RoundTripper.RoundTrip(r.WithContext(ctx))
}

// canaryObserver passes what the comparison counts to the metrics.
type canaryObserver struct{ metrics *admin.Metrics }

// Compared implements canary.Observer.
func (o canaryObserver) Compared(operation mapping.Operation, outcome canary.Outcome) {
	o.metrics.Compared(string(operation), string(outcome), 1)
}

// Dropped implements canary.Observer.
func (o canaryObserver) Dropped(operation mapping.Operation, reason verdict.DropReason) {
	o.metrics.Dropped(string(operation), string(reason), 1)
}

// planWrite renders the request that a tracker would be sent for a write, as it is compared: without credentials and without the
// content of attachments.
func (rt *Runtime) planWrite(ctx context.Context, tracker string, call upstream.Call) ([]byte, error) {
	dialect := rt.trackers[tracker].shadow.Dialect(ctx)
	dialect.Root = "" // the path of the interface is no difference that matters
	planned, err := plan(dialect, call)
	if err != nil {
		return nil, err
	}
	shown := struct {
		Method string         `json:"method"`
		Path   string         `json:"path"`
		RPC    string         `json:"rpc,omitempty"`
		Query  url.Values     `json:"query,omitempty"`
		Body   jsontext.Value `json:"body,omitempty"`
	}{Method: planned.Method, Path: planned.Path, RPC: planned.RPC, Query: planned.Query}
	if planned.Body != nil {
		shown.Body = planned.Body.AppendJSON(nil)
	}
	return json.Marshal(shown)
}

// readAddress is the path and query by which a tracker is asked for a read, empty if it is not asked by GET.
func (rt *Runtime) readAddress(ctx context.Context, tracker string, call upstream.Call) string {
	planned, err := plan(rt.trackers[tracker].shadow.Dialect(ctx), call)
	if err != nil || planned.RPC != "" {
		return ""
	}
	return planned.Path + strings.TrimSuffix("?"+planned.Query.Encode(), "?")
}

// plan plans a call for a dialect.
func plan(dialect mapping.Dialect, call upstream.Call) (bugzilla.Call, error) {
	switch call.Operation {
	case mapping.OpFlagTypes:
		return bugzilla.PlanFlagTypes(dialect, *call.FlagTypes)
	case mapping.OpBugAttachments:
		return bugzilla.PlanBugAttachments(dialect, *call.Attachments)
	case mapping.OpAttachment:
		return bugzilla.PlanAttachment(dialect, *call.Attachments)
	case mapping.OpCreateFlagType:
		return bugzilla.PlanCreateFlagType(dialect, *call.CreateFlagType)
	case mapping.OpUpdateFlagTypes:
		return bugzilla.PlanUpdateFlagTypes(dialect, *call.UpdateFlagTypes)
	case mapping.OpCreateAttachment:
		return bugzilla.PlanCreateAttachment(dialect, *call.CreateAttachment)
	case mapping.OpUpdateAttachments:
		return bugzilla.PlanUpdateAttachments(dialect, *call.UpdateAttachments)
	}
	return bugzilla.Call{}, fmt.Errorf("%q is not an operation", call.Operation)
}

// switchoverSettings join the switchover with both trackers.
func (rt *Runtime) switchoverSettings(known callers) switchover.Settings {
	metrics := rt.resources.metrics
	settings := switchover.Settings{
		Table: rt.cfg.Switchover.Table(), Trackers: map[string]upstream.Tracker{}, Locate: map[string]switchover.Locator{},
		CallerNames: config.SortedKeys(rt.cfg.Callers), Caller: known.name, Shadow: rt.Canary, Follow: rt.cfg.Switchover.Follow,
		UnknownOutcome: max(time.Minute, 4*rt.maxCallTime()), // as for the cache
		Split:          rt.replySplit(), Logger: rt.logger,
		Observer: switchover.Observer{
			Routed: func(operation mapping.Operation, rule, tracker string) {
				metrics.Routed(string(operation), rule, tracker)
			},
			Refused:  func(operation mapping.Operation) { metrics.RefusedWrite(string(operation)) },
			LookedUp: metrics.Lookup,
			Changed: func(status switchover.Status) {
				var rules []admin.RulePhase
				for _, each := range status.Rules {
					rules = append(rules, admin.RulePhase{Rule: each.Rule.Name, Reads: string(each.Rule.Reads), Writes: string(each.Rule.Writes)})
				}
				var killed time.Time
				if status.Killed != nil {
					killed = status.Killed.At
				}
				metrics.Phases(status.Version, killed, rules)
			},
		},
	}
	for name, t := range rt.trackers {
		settings.Trackers[name], settings.Locate[name] = t.front(), t.client
	}
	if rt.resources.dry != nil {
		rt.resources.dry.replace(&settings)
	}
	return settings
}

// callers are the callers that have names, by the digests of both their keys, so that the time of a lookup tells nothing about a key.
type callers map[[sha256.Size]byte]namedCaller

// namedCaller is a caller with its keys at the primary tracker and at the candidate; empty where there is none.
type namedCaller struct{ name, own, shadow string }

// readCallers reads the keys of the callers that have names.
func readCallers(configured map[string]config.Caller, lookup config.Variables) (callers, error) {
	known := callers{}
	for name, caller := range configured {
		own, err := caller.Key.Read(lookup)
		if err != nil {
			return nil, err
		}
		shadow, err := caller.ShadowKey.Read(lookup)
		if err != nil {
			return nil, err
		}
		for _, key := range [][]byte{own, shadow} {
			if key != nil {
				known[sha256.Sum256(key)] = namedCaller{name, string(own), string(shadow)}
			}
		}
	}
	return known, nil
}

// find returns a caller by either of its keys, and the zero value for a caller without a name.
func (k callers) find(caller upstream.Caller) namedCaller {
	if len(k) == 0 || caller.Credentials.APIKey == "" {
		return namedCaller{}
	}
	return k[sha256.Sum256([]byte(caller.Credentials.APIKey))]
}

func (k callers) name(caller upstream.Caller) string { return k.find(caller).name }

// forComparison returns the function that gives the caller in whose name a tracker is asked for a comparison, false where there is none.
// canary.credentials decides what the candidate is shown. An anonymous caller stays anonymous everywhere.
func (k callers) forComparison(cfg *config.Config, service string) func(upstream.Caller, string) (upstream.Caller, bool) {
	policy, candidate := cfg.Canary.Credentials, cfg.Candidate
	return func(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
		credentials := &caller.Credentials
		switch {
		case caller.Anonymous():
		case policy == config.CredentialsService && tracker == candidate:
			*credentials = upstream.Credentials{APIKey: service}
			return caller, true
		case policy == config.CredentialsMapped:
			key := k.find(caller).own
			if tracker == candidate {
				key = k.find(caller).shadow
			}
			*credentials = upstream.Credentials{APIKey: key}
			return caller, key != ""
		}
		// Cookies are not forwarded. A caller that is known by its cookies only would be another one without them.
		byCookies := credentials.LoginCookies() && (credentials.Login == "" || credentials.Password == "") && credentials.Token == ""
		credentials.Cookies = ""
		return caller, !byCookies
	}
}
