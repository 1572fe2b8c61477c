package facade

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/test/wire"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/transport"
)

const recordings = "../testdata/bugzilla-5.2.jsonl"

// front serves Portico, without a cache, in front of a tracker. change may put
// something before the tracker's client.
func front(t *testing.T, behind http.Handler, change func(upstream.Tracker) upstream.Tracker) string {
	t.Helper()
	server := httptest.NewServer(behind)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	stack, err := transport.Chain(nil, transport.Options{Break: transport.BreakOptions{Unanswered: 1 << 20, MinRequests: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stack.Close)
	client, err := bugzilla.New(bugzilla.Options{
		URL: base, Dialect: "bugzilla-5", Transport: stack, Split: mapping.SplitOptions{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	facade, err := proxy.New(proxy.Options{
		Tracker: change(client), BlobDir: t.TempDir(),
		Passthrough: proxy.Passthrough{Base: base, Transport: stack, Prefixes: []string{"/"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	portico := httptest.NewUnstartedServer(facade)
	portico.Listener = proxy.Listener(portico.Listener)
	portico.Config.ConnState = proxy.ConnState
	portico.Start()
	t.Cleanup(portico.Close)
	return portico.URL
}

func unchanged(tracker upstream.Tracker) upstream.Tracker { return tracker }

// replay sends every exchange whose answer is known through the facade at
// address, and gives what differs by the name of the exchange.
func replay(t *testing.T, scripted *Scripted, address string) (differing map[string][]string, count int) {
	t.Helper()
	exchanges, err := wire.Load(recordings)
	if err != nil {
		t.Fatal(err)
	}
	differing = map[string][]string{}
	for _, exchange := range exchanges {
		if exchange.Response == nil {
			continue
		}
		count++
		scripted.Say(*exchange.Response)
		got, err := wire.Send(t.Context(), address, exchange.Request)
		if err != nil {
			differing[exchange.Name] = []string{err.Error()}
			continue
		}
		if diff := significant(wire.Diff(*exchange.Response, got)); len(diff) > 0 {
			differing[exchange.Name] = diff
		}
	}
	return differing, count
}

// TestReplay holds every answer of Portico against the recorded one.
func TestReplay(t *testing.T) {
	scripted := &Scripted{}
	differing, count := replay(t, scripted, front(t, scripted, unchanged))
	kinds := map[Kind]int{Same: count - len(differing)}
	accounts := Accounts()
	for name, diff := range differing {
		account, ok := accountOf(accounts, name)
		if !ok {
			account.Kind = Different
			t.Errorf("%s differs and nobody says why: %s", name, strings.Join(diff, " | "))
		}
		kinds[account.Kind]++
	}
	for _, account := range accounts {
		for _, name := range account.Names {
			if len(differing[name]) == 0 {
				t.Errorf("%s is accounted for (%s) and does not differ any more", name, account.Reason)
			}
		}
	}
	t.Logf("%d exchanges: %d %s, %d %s, %d %s, %d %s", count, kinds[Same], Same, kinds[Better], Better,
		kinds[Unplayable], Unplayable, kinds[Different], Different)
}

// forgetful is a deliberately wrong build: it loses the flags of attachments.
type forgetful struct{ upstream.Tracker }

func (f forgetful) Attachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	reply, err := f.Tracker.Attachment(ctx, caller, request)
	if err != nil || reply.NotModified {
		return reply, err
	}
	text, err := reply.Load(mapping.SplitOptions{})
	if err != nil {
		return reply, err
	}
	return reply, reply.Replace(flags.ReplaceAll(text, nil))
}

var flags = regexp.MustCompile(`"flags":\[[^\]]*\],|,"flags":\[[^\]]*\]`)

// TestReplayNoticesAWrongBuild shows that TestReplay can fail.
func TestReplayNoticesAWrongBuild(t *testing.T) {
	scripted := &Scripted{}
	address := front(t, scripted, func(tracker upstream.Tracker) upstream.Tracker { return forgetful{tracker} })
	differing, _ := replay(t, scripted, address)
	unexplained := 0
	for name := range differing {
		if _, ok := accountOf(Accounts(), name); !ok {
			unexplained++
		}
	}
	if unexplained < 20 {
		t.Errorf("a build that loses the flags of attachments shows in %d exchanges only", unexplained)
	}
}
