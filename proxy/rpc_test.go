package proxy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"portico/proxy"
)

// Calls of the older interfaces that are operations are carried out as those of REST are, where they do not pass. What has no form as an
// operation passes whole.
func TestOperationsOfTheOlderInterfaces(t *testing.T) {
	tracker := &fakeTracker{}
	passed, base := behind(t, "", func(o *proxy.Options) {
		o.Tracker, o.Passthrough.Operations = tracker, func() bool { return true }
	})
	for _, c := range []struct{ body, key, called, says string }{
		{`{"method":"Bug.attachments","params":[{"ids":[5]}],"id":1}`, "", "BugAttachments", `"result":`},
		{`{"method":"FlagType.update","params":[{"ids":[1],"name":"n"}],"id":1}`, "k", "UpdateFlagTypes", `"result":`},
		{`{"method":"FlagType.update","params":[{"ids":[1],"name":"n"}],"id":1}`, "", "", `"code":410`},
		{`{"method":"FlagType.update","params":[{"name":"n"}],"id":1}`, "k", "", `"code":`},
		{`[{"method":"FlagType.update","params":[{"ids":[1]}]}]`, "k", "passed", ""},
		{`{"method":"Bug.comments","params":[{"ids":[1]}]}`, "k", "passed", ""},
	} {
		before := len(tracker.asked())
		passed.last, passed.body = nil, ""
		response := ask(t, http.MethodPost, base+"/jsonrpc.cgi", c.body, "Content-Type", "application/json", "X-BUGZILLA-API-KEY", c.key)
		called := tracker.asked()[before:]
		if passed.last != nil && passed.body == c.body {
			called = append(called, "passed")
		}
		if !slices.Equal(called, strings.Fields(c.called)) || response.status != 200 || !strings.Contains(response.body, c.says) {
			t.Errorf("%s with the key %q: %d %s, called %v", c.body, c.key, response.status, response.body, called)
		}
	}
}
