package canary

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/tracker"
	"portico/upstream/state"
)

const quick = "  confirm_after: 50ms\n"

// TestAFailingCandidateDoesNotPass: a tenth of its replies are 503, and a second request would succeed.
func TestAFailingCandidateDoesNotPass(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{canary: quick + "  target: 8", changeNew: func(_ *http.Request, n int64, status int, body []byte) (int, []byte) {
		if n%10 == 3 {
			return http.StatusServiceUnavailable, []byte("busy")
		}
		return status, body
	}})
	const calls = 80
	for range calls {
		p.read(t, "/rest/bug/attachment/1")
	}
	r := p.report(t, calls)
	if r.Verdict == "PASS" || r.Overall.Failed == 0 || r.Overall.ErrorRate < 0.02 {
		t.Errorf("the verdict is %s, and the numbers are %+v", r.Verdict, r.Overall)
	}
	if op := r.Operations[0]; op.Operation != mapping.OpAttachment || op.Failed == 0 || len(r.open("")) == 0 {
		t.Errorf("the operation has %+v, open are %+v", op, r.open(""))
	}
}

// TestAWrongReplyThatNoWriteExplains: one reply in twenty is wrong, and the next one is right.
func TestAWrongReplyThatNoWriteExplains(t *testing.T) {
	t.Parallel()
	var wrong atomic.Int64
	p := newPair(t, pairOptions{canary: quick + "  target: 8", changeNew: func(_ *http.Request, n int64, status int, body []byte) (int, []byte) {
		if n%20 == 7 {
			wrong.Add(1)
			body = bytes.Replace(body, []byte(`"is_patch":0`), []byte(`"is_patch":1`), 1)
		}
		return status, body
	}})
	const calls = 80
	for range calls {
		p.read(t, "/rest/bug/attachment/1")
	}
	r := p.report(t, calls)
	found := r.open("$.attachments[*].is_patch")
	found = slices.DeleteFunc(found, func(f state.Finding) bool { return f.Kind != "unstable" }) // a second look may be wrong too
	if wrong.Load() == 0 || len(found) != 1 || found[0].Samples == 0 {
		t.Fatalf("%d were wrong, found %+v", wrong.Load(), r.Findings)
	}
	if r.Verdict == "PASS" || r.Overall.Unstable == 0 || r.Overall.Confirmed < r.Overall.Unstable {
		t.Errorf("the verdict is %s, and the numbers are %+v", r.Verdict, r.Overall)
	}
	if sample := p.samples(t, found[0].Signature)[0]; !strings.Contains(sample.Differences[0].Path, "is_patch") {
		t.Errorf("the sample is %+v", sample)
	}
}

// TestAReplicaThatLags: differences that writes explain are no findings, neither of attachments nor of flag types.
func TestAReplicaThatLags(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{
		follows: true, fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkLag}}, canary: "  confirm_after: 700ms",
		settings: "switchover: {rules: [{name: all, writes: old}]}",
	})
	admin := "X-BUGZILLA-API-KEY: " + fixtureKey("admin")
	calls := int64(0)
	for n, end := 0, time.Now().Add(3*time.Second); time.Now().Before(end); n++ {
		p.send(t, http.MethodPut, "/rest/bug/attachment/1", fmt.Sprintf(`{"is_obsolete":%d}`, n%2), admin)
		p.send(t, http.MethodPut, "/rest/flag_type/1", fmt.Sprintf(`{"is_active":%d}`, n%2), admin)
		for _, target := range []string{"/rest/bug/attachment/1", "/rest/flag_type/TestProduct"} {
			p.read(t, target)
			calls++
		}
		time.Sleep(30 * time.Millisecond)
	}
	r := p.report(t, calls)
	if len(r.Findings) > 0 || r.Overall.Transient == 0 {
		t.Errorf("%d were explained by a write, found %+v", r.Overall.Transient, r.Findings)
	}
}

// TestAFieldThatTogglesIsNotConfirmed: both looks show the same pair of values, but the attachment was written between them.
func TestAFieldThatTogglesIsNotConfirmed(t *testing.T) {
	t.Parallel()
	began := time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)
	changed := func(value string, at func(int64) time.Time) change {
		return func(_ *http.Request, n int64, status int, body []byte) (int, []byte) {
			body = bytes.ReplaceAll(body, []byte(`"is_obsolete":0`), []byte(`"is_obsolete":`+value))
			from := bytes.Index(body, []byte(`"last_change_time":"`))
			if from < 0 {
				return status, body
			}
			from += len(`"last_change_time":"`)
			return status, append(append(bytes.Clone(body[:from]), at(n).Format(time.RFC3339)...), body[from+20:]...)
		}
	}
	// The reference is written between the calls of one look and those of the next.
	looks := time.Now()
	p := newPair(t, pairOptions{
		canary:    "  confirm_after: 1500ms",
		changeOld: changed("1", func(int64) time.Time { return began.Add(time.Since(looks).Truncate(time.Second)) }),
		changeNew: changed("0", func(int64) time.Time { return began.Add(-time.Hour) }),
	})
	p.read(t, "/rest/bug/attachment/1")
	r := p.report(t, 1)
	if found := r.open("$.attachments[*].is_obsolete"); len(found) > 0 || r.Overall.Compared != 1 {
		t.Errorf("found %+v in %+v", r.Findings, r.Overall)
	}
}

// TestACandidateThatHangsIsLeftAlone: it holds all workers, so that few calls end, and the breaker opens nevertheless.
func TestACandidateThatHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{canary: quick + "  workers: 1\n  timeout: 3s", changeNew: func(r *http.Request, _ int64, status int, body []byte) (int, []byte) {
		<-r.Context().Done()
		return status, body
	}})
	for id := range 20 {
		p.read(t, fmt.Sprint("/rest/bug/attachment/", id))
	}
	if r := p.report(t, 15); r.Overall.Prevented < 10 || r.Verdict == "PASS" {
		t.Errorf("%+v, dropped %v", r.Overall, r.Dropped)
	}
}

// TestChangeTimesOfEachRead: the reference says of an attachment at each read that it was just changed. So a write explains everything, and proves
// nothing. The report says so, and an equivalence helps.
func TestChangeTimesOfEachRead(t *testing.T) {
	t.Parallel()
	changing := func(_ *http.Request, n int64, status int, body []byte) (int, []byte) {
		at := time.Now().UTC().Add(time.Duration(n%40) * time.Second).Format(time.RFC3339)
		return status, bytes.ReplaceAll(body, []byte(`"last_change_time":"2020-01-02T03:04:05Z"`), []byte(`"last_change_time":"`+at+`"`))
	}
	const calls = 60
	const excused = "  equivalences: [{name: times, type: time-within, path: $.**.last_change_time, within: 200000h, owner: ada, " +
		"reason: times of reads, expires: 2099-01-01}]\n"
	for rules, want := range map[string]string{"": "INCONCLUSIVE", excused: "PASS"} {
		p := newPair(t, pairOptions{canary: quick + "  target: 5\n" + rules, changeOld: changing})
		for range calls {
			p.read(t, "/rest/bug/attachment/1")
		}
		r := p.report(t, calls)
		told := slices.ContainsFunc(r.Overall.Reasons, func(reason string) bool {
			return strings.Contains(reason, "that a write explains, which prove nothing")
		})
		if string(r.Verdict) != want || told != (rules == "") || len(r.Findings) > 0 {
			t.Errorf("with the rules %q: %s, %+v", rules, r.Verdict, r.Overall)
		}
	}
}
