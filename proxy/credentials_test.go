package proxy_test

import (
	"context"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// bearerKey is a bearer token that could be an API key.
const bearerKey = "K000000000000000000000000000000000000000"

// recordCallers keeps the last caller.
func recordCallers(into *upstream.Caller) *fakeTracker {
	return &fakeTracker{
		flagTypes: func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) (mapping.Reply, error) {
			*into = caller
			return mapping.Reply{Document: document(noFlagTypes)}, nil
		},
		updateAttachments: func(_ context.Context, caller upstream.Caller, request mapping.AttachmentUpdate) (mapping.Reply, error) {
			*into = caller
			if len(request.Extra) > 0 {
				return mapping.Reply{}, mapping.Refuse(mapping.CodeUnknownField, "unknown %s", request.Extra[0].Name)
			}
			return mapping.Reply{Document: document(`{"attachments":[]}`)}, nil
		},
	}
}

func TestCredentialsOfReads(t *testing.T) {
	var got upstream.Caller
	base := serve(t, proxy.Options{Tracker: recordCallers(&got)}) + "/rest/flag_type/P"
	cases := []struct {
		query  string
		header []string
		want   upstream.Credentials
	}{
		{"", nil, upstream.Credentials{}},
		{"?api_key=K", nil, upstream.Credentials{APIKey: "K"}},
		{"?Bugzilla_api_key=K", nil, upstream.Credentials{APIKey: "K"}},
		{"?Bugzilla_api_key=L&api_key=K", nil, upstream.Credentials{APIKey: "K"}},
		{"?api_key=+K%20", nil, upstream.Credentials{APIKey: "K"}},
		{"?api_key=", nil, upstream.Credentials{}},
		{"?API_KEY=K", nil, upstream.Credentials{}},
		{"?login=a@b&password=p", nil, upstream.Credentials{Login: "a@b", Password: "p"}},
		{"?Bugzilla_login=a&Bugzilla_password=p", nil, upstream.Credentials{Login: "a", Password: "p"}},
		{"?login=+a&password=+p%20", nil, upstream.Credentials{Login: "a", Password: " p "}},
		{"?login=a&password=+", nil, upstream.Credentials{Login: "a", Password: " "}},
		{"?token=8-x", nil, upstream.Credentials{Token: "8-x"}},
		{"?Bugzilla_token=8-x", nil, upstream.Credentials{Token: "8-x"}},
		{"", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{APIKey: "K"}},
		{"", []string{"X-BUGZILLA-API-KEY", ""}, upstream.Credentials{}},
		{"", []string{"X-API-KEY", "K"}, upstream.Credentials{}},
		{"", []string{"X-BUGZILLA-LOGIN", "a", "X-BUGZILLA-PASSWORD", "p"}, upstream.Credentials{Login: "a", Password: "p"}},
		{"", []string{"X-BUGZILLA-TOKEN", "8-x"}, upstream.Credentials{Token: "8-x"}},
		{"", []string{"Authorization", "Bearer " + bearerKey}, upstream.Credentials{APIKey: bearerKey, Authorization: "Bearer " + bearerKey}},
		{"", []string{"Authorization", "Bearer K"}, upstream.Credentials{Authorization: "Bearer K"}},
		{"", []string{"X-BUGZILLA-API-KEY", "K", "Authorization", "Bearer K"},
			upstream.Credentials{APIKey: "K", KeyTwice: true, Authorization: "Bearer K"}},
		{"?api_key=K", []string{"Authorization", "Bearer K"}, upstream.Credentials{APIKey: "K"}},
		{"?token=8-x", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{Token: "8-x"}},
		{"?login=a", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{Login: "a", APIKey: "K"}},
		{"", []string{"Authorization", "Basic eDp5"}, upstream.Credentials{Authorization: "Basic eDp5"}},
		{"", []string{"Cookie", "Bugzilla_login=8; Bugzilla_logincookie=x"}, upstream.Credentials{Cookies: "Bugzilla_login=8; Bugzilla_logincookie=x"}},
		{"?api_key=Q", []string{"X-BUGZILLA-API-KEY", "K", "Authorization", "Bearer B"}, upstream.Credentials{APIKey: "Q"}},
		{"?api_key=", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{APIKey: "K"}},
		{"?login=a&password=p", []string{"X-BUGZILLA-LOGIN", "h", "X-BUGZILLA-PASSWORD", "h"}, upstream.Credentials{Login: "a", Password: "p"}},
	}
	for _, c := range cases {
		ask(t, "GET", base+c.query, "", c.header...).wantStatus(t, 200)
		if got.Credentials != c.want {
			t.Errorf("%s %q: another caller than expected", c.query, c.header)
		}
	}
	ask(t, "GET", base+"?api_key=a&api_key=b", "").wantError(t, 400, "306")
}

func TestCredentialsOfWrites(t *testing.T) {
	var got upstream.Caller
	base := serve(t, proxy.Options{Tracker: recordCallers(&got)}) + "/rest/bug/attachment/5"
	cases := []struct {
		query, body string
		header      []string
		want        upstream.Credentials
	}{
		{"", `{"api_key":"K"}`, nil, upstream.Credentials{APIKey: "K"}},
		{"", `{"Bugzilla_api_key":"L","api_key":" K "}`, nil, upstream.Credentials{APIKey: "K"}},
		{"", `{"login":"a","password":"p"}`, nil, upstream.Credentials{Login: "a", Password: "p"}},
		{"", `{"login":" a","password":" p\t"}`, nil, upstream.Credentials{Login: "a", Password: " p\t"}},
		{"", "login=a&password=+p", []string{"Content-Type", "application/x-www-form-urlencoded"}, upstream.Credentials{Login: "a", Password: " p"}},
		{"", `{"Bugzilla_token":"8-x"}`, nil, upstream.Credentials{Token: "8-x"}},
		{"?api_key=Q", `{"api_key":"K"}`, nil, upstream.Credentials{APIKey: "Q"}},
		{"?api_key=Q&api_key=R", `{}`, nil, upstream.Credentials{APIKey: "Q"}},
		{"", `{"api_key":"K"}`, []string{"X-BUGZILLA-API-KEY", "H"}, upstream.Credentials{APIKey: "K"}},
		{"", `{"api_key":null}`, []string{"X-BUGZILLA-API-KEY", "H"}, upstream.Credentials{APIKey: "H"}},
		{"", `{"api_key":12}`, nil, upstream.Credentials{APIKey: "12"}},
		{"", `api_key=K&summary=s`, []string{"Content-Type", "application/x-www-form-urlencoded"}, upstream.Credentials{APIKey: "K"}},
	}
	for _, c := range cases {
		ask(t, "PUT", base+c.query, c.body, c.header...).wantStatus(t, 200)
		if got.Credentials != c.want {
			t.Errorf("%s %s %q: another caller than expected", c.query, c.body, c.header)
		}
	}
	ask(t, "PUT", base, `{"api_key":["K"]}`).wantError(t, 400, "306")
	ask(t, "PUT", base+"?api_key=Q", `{"token":{}}`).wantError(t, 400, "306")
}

// With an empty password a caller is not anonymous, whatever else the request has: a tracker checks the login first.
func TestEmptyPassword(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	read, write := base+"/rest/flag_type/P", base+"/rest/bug/attachment/5"
	for _, query := range []string{"?login=a&password=", "?password&login=a", "?Bugzilla_login=a&Bugzilla_password=", "?login=a&password=&api_key=K"} {
		ask(t, "GET", read+query, "").wantError(t, 401, "300")
		ask(t, "PUT", write+query, "{}").wantError(t, 401, "300")
	}
	for _, body := range []string{`{"login":"a","password":""}`, `{"Bugzilla_login":"a","Bugzilla_password":"","api_key":"K"}`} {
		ask(t, "PUT", write, body).wantError(t, 401, "300")
	}
	ask(t, "PUT", write+"?login=a", "password=", "Content-Type", "application/x-www-form-urlencoded").wantError(t, 401, "300")
	if asked := tracker.asked(); len(asked) > 0 {
		t.Errorf("the tracker was asked: %v", asked)
	}
	for _, query := range []string{"?login=a", "?login=&password=", "?password="} {
		ask(t, "GET", read+query, "").wantStatus(t, 200)
	}
	ask(t, "PUT", write+"?login=a", `{"password":null}`).wantError(t, 401, "410")
	ask(t, "PUT", write+"?login=a&password=", `{"password":"p"}`).wantStatus(t, 200)
}

// The order is JSON, credentials, login, fields (tracker-behaviour.md section 1).
func TestOrderOfChecks(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	ask(t, "POST", base+"/rest/flag_type", `{`).wantError(t, 400, "32000")
	ask(t, "POST", base+"/rest/flag_type", `{"api_key":[]}`).wantError(t, 400, "306")
	anonymous := ask(t, "POST", base+"/rest/flag_type", `{"sortkey":"x"}`)
	anonymous.wantError(t, 401, "410")
	if got := anonymous.header.Get("Portico-Error"); got != "login-required" {
		t.Errorf("Portico-Error %q", got)
	}
	ask(t, "POST", base+"/rest/flag_type?login=a", `{}`).wantError(t, 401, "410")
	ask(t, "PUT", base+"/rest/flag_type/1", ``).wantError(t, 401, "410")
	ask(t, "POST", base+"/rest/bug/1/attachment", `{}`).wantError(t, 401, "410")
	ask(t, "PUT", base+"/rest/bug/attachment/1", `{}`).wantError(t, 401, "410")
	ask(t, "POST", base+"/rest/flag_type"+key, `{"sortkey":"x"}`).wantError(t, 400, "50")
	if calls := tracker.asked(); len(calls) != 0 {
		t.Errorf("the tracker was asked: %v", calls)
	}
}

func TestCallerHasAddressAgentAndID(t *testing.T) {
	var got upstream.Caller
	base := serve(t, proxy.Options{Tracker: recordCallers(&got)})
	ask(t, "GET", base+"/rest/flag_type/P", "", "User-Agent", "python-bugzilla/3.2.0", "X-Request-Id", "abc-1").wantStatus(t, 200)
	if got.Address != "127.0.0.1" || got.UserAgent != "python-bugzilla/3.2.0" || got.RequestID != "abc-1" {
		t.Errorf("address %q, agent %q, id %q", got.Address, got.UserAgent, got.RequestID)
	}
}
