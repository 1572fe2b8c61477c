package canary

import (
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/tracker"
)

// TestCallsOfOlderInterfaces are compared as those of REST: planted differences are found, and equal trackers have none.
func TestCallsOfOlderInterfaces(t *testing.T) {
	t.Parallel()
	settings := strings.Join([]string{
		"switchover:", "  ids: {attachment: {mode: identity}, flag: {mode: identity}, flag_type: {mode: identity}}",
		"  rules: [{name: all, reads: old-compare, writes: old}]",
	}, "\n")
	xml := func(method, member, value string) string {
		return "<?xml version='1.0'?><methodCall><methodName>" + method + "</methodName><params><param><value><struct><member><name>" + member +
			"</name><value><array><data><value>" + value + "</value></data></array></value></member></struct></value></param></params></methodCall>"
	}
	calls := [][3]string{
		{"/jsonrpc.cgi", "application/json", `{"method":"Bug.attachments","params":[{"attachment_ids":[1]}],"id":1}`},
		{"/jsonrpc.cgi", "application/json", `{"method":"Bug.attachments","params":[{"ids":[1]}],"id":1}`},
		{"/jsonrpc.cgi", "application/json", `{"method":"FlagType.get","params":[{"product":"TestProduct"}],"id":1}`},
		{"/xmlrpc.cgi", "text/xml", xml("Bug.attachments", "attachment_ids", "<int>1</int>")},
		{"/xmlrpc.cgi", "text/xml", xml("Bug.attachments", "ids", "<int>1</int>")},
	}
	for _, planted := range [][]tracker.Quirk{nil, {tracker.QuirkMissingField}} {
		p := newPair(t, pairOptions{canary: quick, settings: settings, fresh: tracker.Options{Quirks: planted}})
		for _, call := range calls {
			if status := p.send(t, http.MethodPost, call[0], call[2], "Content-Type: "+call[1]); status != http.StatusOK {
				t.Errorf("%s: status %d", call[2], status)
			}
		}
		r := p.report(t, int64(len(calls)))
		compared, differing := map[mapping.Operation]int64{}, map[mapping.Operation]int64{}
		for _, v := range r.Operations {
			compared[v.Operation], differing[v.Operation] = v.Compared, v.Confirmed
		}
		for operation, n := range map[mapping.Operation]int64{mapping.OpAttachment: 2, mapping.OpBugAttachments: 2, mapping.OpFlagTypes: 1} {
			if want := n * int64(len(planted)); compared[operation] != n || differing[operation] != want {
				t.Errorf("planted %v, %s: %d of %d differ, want %d of %d; found %+v", planted, operation, differing[operation], compared[operation], want, n, r.Findings)
			}
		}
	}
}
