package facade

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

const testdata = "../testdata"

// replay runs the recordings of a tracker through a house of its own.
func replay(t *testing.T, tracker Tracker, change func(upstream.Tracker) upstream.Tracker) []Result {
	t.Helper()
	_, results, err := tracker.Replay(t.Context(), testdata, change)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestReplay holds every answer of Portico against the recorded one.
func TestReplay(t *testing.T) {
	for _, tracker := range Trackers() {
		t.Run(tracker.Title, func(t *testing.T) {
			t.Parallel()
			testReplay(t, tracker)
		})
	}
}

func testReplay(t *testing.T, tracker Tracker) {
	kinds := map[Kind]int{}
	differing := map[string]bool{}
	results := replay(t, tracker, nil)
	for _, result := range results {
		kinds[result.Kind()]++
		differing[result.Name] = result.Kind() != Same
		if result.Kind() == Different {
			t.Errorf("%s differs without a reason: %s", result.Name, strings.Join(result.Diff, " | "))
		}
	}
	for _, account := range tracker.Accounts {
		for _, name := range account.Names {
			if !differing[name] && !account.May {
				t.Errorf("%s is accounted for (%s) and does not differ any more", name, account.Reason)
			}
		}
	}
	t.Logf("%d exchanges: %d %s, %d %s, %d %s, %d %s", len(results), kinds[Same], Same, kinds[Better], Better,
		kinds[Unplayable], Unplayable, kinds[Different], Different)
}

// forgetful is a deliberately wrong build: it loses the flags of attachments.
type forgetful struct{ upstream.Tracker }

func (f forgetful) Attachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	reply, err := f.Tracker.Attachment(ctx, caller, request)
	if err != nil || reply.NotModified {
		return reply, err
	}
	text, err := reply.Load(jsonblob.SplitOptions{})
	if err != nil {
		return reply, err
	}
	return reply, reply.Replace(flags.ReplaceAll(text, nil))
}

var flags = regexp.MustCompile(`"flags":\[[^\]]*\],|,"flags":\[[^\]]*\]`)

// TestReplayNoticesAWrongBuild shows that TestReplay can fail.
func TestReplayNoticesAWrongBuild(t *testing.T) {
	unexplained := 0
	for _, result := range replay(t, Trackers()[0], func(tracker upstream.Tracker) upstream.Tracker { return forgetful{tracker} }) {
		if result.Kind() == Different {
			unexplained++
		}
	}
	if unexplained < 20 {
		t.Errorf("a build that loses the flags of attachments shows in %d exchanges only", unexplained)
	}
}
