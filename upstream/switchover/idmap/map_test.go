package idmap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/state"
	"portico/upstream/switchover/idmap"
)

func TestPassingRequestsThatWouldMeanOtherObjects(t *testing.T) {
	m := paired(t)
	for _, c := range []struct {
		side        idmap.Side
		path, query string
		operation   bool
		refused     bool
	}{
		{idmap.OldSide, "/rest/bug/7", "", false, false},
		{idmap.NewSide, "/rest/bug/7", "", false, true},
		{idmap.NewSide, "/rest/bug/%207", "", false, true},
		{idmap.NewSide, "/rest/bug/alias-one/comment", "", false, false},
		{idmap.NewSide, "/rest.cgi/bug/8/comment", "", false, true},
		{idmap.OldSide, "/rest/bug/1000000007", "", false, true},
		{idmap.NewSide, "/rest/bug/1000000907", "", false, true},
		{idmap.OldSide, "/show_bug.cgi", "id=7", false, false},
		{idmap.NewSide, "/show_bug.cgi", "id=7", false, true},
		{idmap.NewSide, "/show_bug.cgi", "id=alias,%208", false, true},
		{idmap.OldSide, "/attachment.cgi", "id=5", false, false},
		{idmap.NewSide, "/attachment.cgi", "id=5&action=edit", false, true},
		{idmap.OldSide, "/attachment.cgi", "id=12", false, true},
		{idmap.NewSide, "/attachment.cgi", "bugid=7&action=enter", false, true},
		{idmap.NewSide, "/rest/version", "", false, false},
		{idmap.NewSide, "/", "", false, false},
		{idmap.NewSide, "/jsonrpc.cgi", "", true, true},
		{idmap.OldSide, "/jsonrpc.cgi", "", true, false},
		{idmap.NewSide, "/jsonrpc.cgi", "", false, false},
	} {
		request, err := http.NewRequest(http.MethodGet, c.path+"?"+c.query, nil)
		must(t, err)
		query := func(name string) []string { return request.URL.Query()[name] }
		err = m.CheckPassing(t.Context(), string(c.side), c.path, query, c.operation)
		if (err != nil) != c.refused {
			t.Errorf("%s %s?%s: %v, want a refusal: %v", c.side, c.path, c.query, err, c.refused)
		}
		if err != nil {
			if failed := refusal(t, err); failed.Status != 409 || failed.Code != 200409 || failed.Reason != upstream.ReasonUnmapped {
				t.Errorf("got %+v", failed)
			}
		}
	}
}

func TestTheStoreAway(t *testing.T) {
	store := openStore(t)
	m := idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Flag: {}}}})
	stored(m, store)
	pair(t, m, idmap.Attachment, 5, idmap.NewSide, 905)
	pair(t, m, idmap.Attachment, 905+offset, idmap.OldSide, 8)
	tr := m.Tracker("new", &inner{reply: text(`{"attachments":[{"id":905}]}`)})
	if _, err := tr.Do(t.Context(), caller, updating(5)); err != nil {
		t.Fatal(err)
	}
	must(t, store.Close())
	_, err := tr.Do(t.Context(), caller, updating(6))
	if failed := refusal(t, err); failed.Status != 503 || failed.RetryAfter <= 0 || failed.Reason != upstream.ReasonUnmapped || !upstream.NotWritten(err) {
		t.Errorf("got %+v: nothing was sent", failed)
	}
}

func TestPairsThatTheRulesExclude(t *testing.T) {
	store := openStore(t)
	m := idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Flag: {Offset: 100}}}})
	for name, p := range map[string]state.IDPair{
		"identity":      {Kind: "bug", Client: 5, Side: "new", Native: 6 + idmap.DefaultOffset},
		"no kind":       {Kind: "x", Client: 5, Side: "new", Native: 6},
		"born at old":   {Kind: "flag", Client: 5, Side: "old", Native: 6},
		"born at new":   {Kind: "flag", Client: 105, Side: "new", Native: 106},
		"a copy":        {Kind: "flag", Client: 5, Side: "new", Native: 50},
		"no id":         {Kind: "flag", Client: 0, Side: "new", Native: 106},
		"beyond 32 bit": {Kind: "attachment", Client: 5, Side: "new", Native: 1<<31 + idmap.DefaultOffset},
	} {
		if err := add(m, store, idmap.Kind(p.Kind), p.Client, idmap.Side(p.Side), p.Native); err == nil {
			t.Errorf("%s: the pair was added", name)
		}
	}
	if err := add(m, store, idmap.Flag, 5, idmap.NewSide, 150); err != nil {
		t.Error(err)
	}
	if err := add(m, store, idmap.Flag, 6, idmap.NewSide, 150); err == nil || !strings.Contains(err.Error(), "flag 6 ") || !strings.Contains(err.Error(), "flag 5 ") {
		t.Errorf("a pair that contradicts another one: %v", err)
	}
}

func TestSettingsThatCannotBeUsed(t *testing.T) {
	type rules = map[idmap.Kind]idmap.Rule
	type table = map[idmap.Name]idmap.Name
	some := rules{idmap.Flag: {}}
	for name, c := range map[string]struct {
		settings idmap.Settings
		both     bool
		want     []string
	}{
		"nothing":           {idmap.Settings{}, true, nil},
		"identity, reading": {idmap.Settings{IDs: rules{idmap.Flag: {Mode: idmap.Identity}}}, false, nil},
		"identity, writing": {idmap.Settings{IDs: rules{idmap.Flag: {Mode: idmap.Identity}, idmap.Bug: {Mode: idmap.Identity}, idmap.Group: {Mode: idmap.Identity}}}, true, []string{"ids.flag"}},
		"no kind":           {idmap.Settings{IDs: rules{"x": {}}}, true, []string{"ids.x"}},
		"names alone":       {idmap.Settings{Names: idmap.Names{Product: table{"A": "B"}}}, true, []string{"names.product"}},
		"two for one":       {idmap.Settings{IDs: some, Names: idmap.Names{Product: table{"A": "B", "C": " b"}}}, true, []string{"names.product"}},
		"one for two":       {idmap.Settings{IDs: some, Names: idmap.Names{User: table{"A": "B", "a": "C"}}}, true, []string{"names.user"}},
	} {
		var keys []string
		for _, problem := range c.settings.Problems(c.both) {
			keys = append(keys, problem.Key)
		}
		if !slices.Equal(keys, c.want) {
			t.Errorf("%s: problems of %v, want %v", name, keys, c.want)
		}
	}
}

// TestAnOffsetThatIdsComeNear is noticed before ids of the old tracker can no longer be shown.
func TestAnOffsetThatIdsComeNear(t *testing.T) {
	m := idmap.New(idmap.Options{Old: "old", New: "new", Store: openStore(t), Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Attachment: {Offset: 100}}}})
	for id, want := range map[int64]string{89: "", 90: "the old tracker has attachment 90, and the offset is 100"} {
		in := &inner{reply: text(fmt.Sprintf(`{"attachments":[{"id":%d,"bug_id":500}]}`, id))}
		if _, err := m.Tracker("old", in).Do(t.Context(), caller, updating(5)); err != nil {
			t.Fatal(err)
		}
		if got := m.IDProblem(true); id == 90 && got != want || id == 89 && got != want && !strings.Contains(got, " 90,") {
			t.Errorf("after attachment %d: %q", id, got)
		}
	}
}

// TestSharedIDsWhereBothTrackersWrite: a step that moves or copies writes would give one id to two objects.
func TestSharedIDsWhereBothTrackersWrite(t *testing.T) {
	for mode, want := range map[idmap.Mode]string{idmap.Identity: "switchover.ids.attachment: has the mode identity", idmap.Offset: ""} {
		m := idmap.New(idmap.Options{Old: "old", New: "new", Store: openStore(t), Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Attachment: {Mode: mode}}}})
		if one, both := m.IDProblem(false), m.IDProblem(true); one != "" || !strings.HasPrefix(both, want) || (both == "") != (want == "") {
			t.Errorf("%s: %q where one tracker gets writes, %q where both do", mode, one, both)
		}
	}
}

// TestACopyIsShownUnderItsOwnIDOnly: an id without a pair waits until copies under way are known. After that it is an object of its own for ever.
func TestACopyIsShownUnderItsOwnIDOnly(t *testing.T) {
	store := openStore(t)
	var asked atomic.Int64
	copies := make(chan []int64, 200)
	m := idmap.New(idmap.Options{
		Old: "old", New: "new",
		Store: store, Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Attachment: {}}},
		Copying: func(context.Context, string) ([]int64, error) {
			asked.Add(1)
			select {
			case under := <-copies:
				return under, nil
			case <-time.After(20 * time.Second):
				return nil, errors.New("one question too many")
			}
		},
	})
	update := func(m *idmap.Map, id int64) (string, error) {
		in := &inner{reply: text(fmt.Sprintf(`{"attachments":[{"id":%d}]}`, id))}
		reply, err := m.Tracker("new", in).Do(t.Context(), caller, updating(offset+1))
		if err != nil {
			return "", err
		}
		return process.Text(t, reply.Document, nil), nil
	}
	copies <- []int64{7, 8}
	copies <- []int64{8, 9}
	result := make(chan string, 1)
	go func() {
		text, err := update(m, 905)
		result <- fmt.Sprint(text, err)
	}()
	for end := time.Now().Add(time.Minute); asked.Load() < 3 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	stored(m, store)
	pair(t, m, idmap.Attachment, 5, idmap.NewSide, 905)
	copies <- []int64{9} // which began later
	if got := <-result; !strings.Contains(got, `"id":5}`) {
		t.Errorf("a copy under way: %s", got)
	}
	copies <- nil
	for range 2 {
		if got, err := update(m, 906); err != nil || !strings.Contains(got, `"id":1000000906}`) {
			t.Errorf("an object of its own: %s (%v)", got, err)
		}
	}
	copies <- []int64{9}
	copies <- []int64{10} // which began later
	if got, err := update(m, 911); err != nil || !strings.Contains(got, `"id":1000000911}`) {
		t.Errorf("an object of its own beside copies: %s (%v)", got, err)
	}
	if n := asked.Load(); n != 6 {
		t.Errorf("it was asked %d times for copies, want 6", n)
	}
	if got, err := update(m.ForCopies(), 907); err != nil || !strings.Contains(got, `"id":1000000907}`) {
		t.Errorf("for what makes copies: %s (%v)", got, err)
	}
	for id, made := range map[int64]struct {
		by    *idmap.Map
		asked int64
	}{909: {m, 0}, 910: {m.ForCopies(), 1}} { // what a client has made is no copy
		before := asked.Load()
		in := &inner{reply: text(fmt.Sprintf(`{"ids":[%d]}`, id))}
		create := upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{}}
		if _, err := made.by.Tracker("new", in).Do(t.Context(), caller, create); err != nil {
			t.Fatal(err)
		}
		for range made.asked {
			copies <- nil
		}
		got, err := update(m, id)
		if n := asked.Load() - before; err != nil || n != made.asked || !strings.Contains(got, fmt.Sprint(offset+id)) {
			t.Errorf("%d is shown as %s after %d questions for copies, want %d (%v)", id, got, n, made.asked, err)
		}
	}
	for len(copies) < cap(copies) {
		copies <- []int64{1}
	}
	_, err := update(m, 908)
	if failed := refusal(t, err); failed.Status != 503 || failed.RetryAfter == 0 || failed.Reason != upstream.ReasonUnmapped || !strings.Contains(failed.Message, "may be a copy") || !failed.Unknown {
		t.Errorf("a copy that does not end: %+v", failed)
	}
}

// TestPairsOfOtherProcessesAreSeen adds a pair by one map of a store after another one has found none.
func TestPairsOfOtherProcessesAreSeen(t *testing.T) {
	store := openStore(t)
	settings := idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Attachment: {}}}
	reader, writer := idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: settings}), idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: settings})
	in := &inner{reply: text(`{"attachments":[]}`)}
	tr := reader.Tracker("new", in)
	for _, m := range []*idmap.Map{reader, writer} {
		if _, err := m.Tracker("new", in).Do(t.Context(), caller, updating(5)); refusal(t, err).Reason != upstream.ReasonUnmapped {
			t.Fatal(err)
		}
	}
	imported := false
	stored(writer, store)
	pair(t, writer, idmap.Attachment, 5, idmap.NewSide, 905)
	if _, err := writer.Tracker("new", in).Do(t.Context(), caller, updating(5)); err != nil {
		t.Errorf("the map that added a pair does not know it: %v", err)
	}
	in.reply = text(`{"attachments":[{"id":906}]}`)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		reply, err := tr.Do(t.Context(), caller, updating(5))
		if err == nil {
			if shown := process.Text(t, reply.Document, nil); strings.Contains(shown, `"id":6}`) {
				break
			} else if err = errors.New(shown); strings.Contains(shown, fmt.Sprint(offset+906)) && !imported {
				pair(t, writer, idmap.Attachment, 6, idmap.NewSide, 906) // as an import does
				imported = true
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the pair is never seen: %v", err)
		}
	}
	if got := in.call.UpdateAttachments.IDs[0]; got != 905 {
		t.Errorf("the tracker got %d", got)
	}
}

// TestAClientThatLeavesSaysNothingOfTheStore: what has no pair is asked for again by the next request.
func TestAClientThatLeavesSaysNothingOfTheStore(t *testing.T) {
	m := idmap.New(idmap.Options{Old: "old", New: "new", Store: openStore(t), Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Attachment: {}}}})
	tr := m.Tracker("new", &inner{reply: text(`{"attachments":[{"id":906}]}`)})
	if _, err := tr.Do(t.Context(), caller, updating(offset+906)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond) // the store is asked again about what had no pair
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := tr.Do(left, caller, updating(offset+906)); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has left got %v", err)
	}
}
