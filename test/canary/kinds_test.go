package canary

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAnAcceptanceHidesNoOtherKind: accepted is another summary of one attachment. A script in that of another attachment is
// a finding of its own.
func TestAnAcceptanceHidesNoOtherKind(t *testing.T) {
	t.Parallel()
	var second atomic.Bool
	p := newPair(t, pairOptions{canary: quick, changeNew: func(r *http.Request, _ int64, status int, body []byte) (int, []byte) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/attachment/1"):
			body = withSummary(body, "rewritten by hand")
		case strings.HasSuffix(r.URL.Path, "/attachment/3") && second.Load():
			body = withSummary(body, "<script>alert(1)</script>")
		case strings.HasSuffix(r.URL.Path, "/attachment/11") && second.Load():
			body = withSummary(body, "plain words of another one")
		}
		return status, body
	}})
	const path = "$.attachments[*].summary"
	p.read(t, "/rest/bug/attachment/1")
	first := p.report(t, 1).open(path)
	if len(first) != 1 {
		t.Fatalf("found %+v", first)
	}
	p.judge(t, first[0].Signature, "accept")
	second.Store(true)
	for _, target := range []string{"1", "3", "11"} {
		p.read(t, "/rest/bug/attachment/"+target)
	}
	r := p.report(t, 4)
	if found := r.open(path); len(found) != 2 || r.Overall.Confirmed != 2 {
		t.Errorf("open are %+v, and the numbers %+v", found, r.Overall)
	}
	shown := int64(0)
	for _, point := range r.Timeline {
		shown += point.Confirmed
	}
	if shown != r.Overall.Confirmed {
		t.Errorf("the time line has %d mismatches, the report %d", shown, r.Overall.Confirmed)
	}
}

// withSummary replaces the value of the first summary.
func withSummary(body []byte, text string) []byte {
	const name = `"summary":"`
	from := bytes.Index(body, []byte(name))
	if from < 0 {
		return body
	}
	from += len(name)
	to := from + bytes.IndexByte(body[from:], '"')
	return append(append(bytes.Clone(body[:from]), text...), body[to:]...)
}

// TestEquivalencesOfExtraMembersAndPairs are hit and excuse what they name.
func TestEquivalencesOfExtraMembersAndPairs(t *testing.T) {
	t.Parallel()
	const signed = `owner: ada, reason: "known", expires: 2099-01-01`
	p := newPair(t, pairOptions{
		canary: quick + "  equivalences:\n" +
			`    - {name: more, type: extra, path: "$.attachments[*].attacher", ` + signed + "}\n" +
			`    - {name: gone, type: pair, path: status, want: 200, have: 404, ` + signed + "}\n" +
			`    - {name: code, type: pair, path: code, want: 0, have: 101, ` + signed + "}",
		changeNew: func(r *http.Request, _ int64, status int, body []byte) (int, []byte) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/attachment/1"):
				return status, bytes.Replace(body, []byte(`"summary":`), []byte(`"attacher":"dev","summary":`), 1)
			case strings.HasSuffix(r.URL.Path, "/attachment/3"):
				return http.StatusNotFound, []byte(`{"error":true,"code":101,"message":"There is no such thing."}`)
			}
			return status, body
		},
	})
	p.read(t, "/rest/bug/attachment/1")
	p.read(t, "/rest/bug/attachment/3")
	r := p.report(t, 2)
	if len(r.Findings) > 0 || len(r.Rules) != 3 {
		t.Errorf("found %+v, rules %+v", r.Findings, r.Rules)
	}
	for _, rule := range r.Rules {
		if rule.Hits == 0 {
			t.Errorf("the rule %s was never hit", rule.Name)
		}
	}
}

// TestPairsExcuseOnlyTheStatus: what else differs is found, unless the code differs, too.
func TestPairsExcuseOnlyTheStatus(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{
		canary: quick + "  equivalences:\n" +
			"    - {name: made, type: pair, path: status, want: 200, have: 201, owner: ada, reason: known, expires: 2099-01-01}",
		changeNew: func(r *http.Request, _ int64, _ int, body []byte) (int, []byte) {
			if strings.HasSuffix(r.URL.Path, "/attachment/3") {
				body = bytes.Replace(body, []byte(`"is_patch":1`), []byte(`"is_patch":0`), 1)
			}
			return http.StatusCreated, body
		},
	})
	p.read(t, "/rest/bug/attachment/1")
	p.read(t, "/rest/bug/attachment/3")
	r := p.report(t, 2)
	if len(r.Findings) != 1 || r.Findings[0].Path != "$.attachments[*].is_patch" || r.Findings[0].Count != 1 || r.Overall.Confirmed != 1 {
		t.Errorf("found %+v", r.Findings)
	}
}
