package proxy

import (
	"net/http"
	"strings"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// admitEarly counts a call before its body is read, if it is known by then who asks.
func (x *exchange) admitEarly() error {
	if x.server.rates == nil {
		return nil
	}
	caller := x.caller
	if x.operation.IsWrite() {
		var err error
		// A mistake in them is told when the body is read.
		if caller.Credentials, err = credentials(x.r.Header, x.query, &mapping.Members{}); err != nil || caller.Anonymous() {
			return nil
		}
	}
	return x.admit(caller)
}

// admit counts a call, once, and refuses it when it is one too many.
func (x *exchange) admit(caller upstream.Caller) error {
	if x.server.rates == nil || x.admitted {
		return nil
	}
	x.admitted = true
	wait, unproved := x.server.rates.take(time.Now(), caller)
	if unproved {
		x.unproved = &caller
	}
	return tooOften(wait)
}

// proved takes note that the tracker has carried the call out for its caller. What was counted before the body was read may
// not be what the tracker was shown.
func (x *exchange) proved() {
	if x.unproved != nil && x.unproved.Credentials == x.caller.Credentials && proves(x.unproved.Credentials, x.operation.IsWrite()) {
		x.server.rates.accept(*x.unproved)
	}
}

// admitPassing counts a call that is no operation, and gives who asks if that is still to be proved. Its body is not looked
// at, so a credential there counts as none.
func (s *Server) admitPassing(r *http.Request) (unproved *upstream.Caller, err error) {
	if s.rates == nil {
		return nil, nil
	}
	caller := s.passingCaller(r)
	wait, open := s.rates.take(time.Now(), caller)
	if !open {
		return nil, tooOften(wait)
	}
	return &caller, tooOften(wait)
}

// passed takes note of how a call that is no operation went. Only reads of REST resources prove something: pages ignore
// most credentials, and a refused write may look like a success.
func (s *Server) passed(unproved *upstream.Caller, r *http.Request, status int) {
	if unproved == nil || status != http.StatusOK || r.Method != http.MethodGet || !proves(unproved.Credentials, false) {
		return
	}
	_, path, _ := strings.Cut(r.URL.Path[1:], "/")
	resource, _, _ := strings.Cut(path, "/")
	switch resource {
	case "bug", "user", "product", "whoami": // others, such as version, answer whoever asks
		if isREST(r.URL.Path) {
			s.rates.accept(*unproved)
		}
	}
}

// proves tells whether a success shows that a credential is good. Reads ignore cookies, what is in Authorization but a key, and
// tokens without a number; of credentials of several kinds at once a tracker may look at one only (wire-facts.md, section 1).
func proves(shown upstream.Credentials, write bool) bool {
	login, session := loginCookies(shown.Cookies)
	basic := shown.Authorization != "" && shown.Bearer() == ""
	user, _, dashed := strings.Cut(shown.Token, "-")
	numbered := dashed && user != "" && strings.Trim(user, "0123456789") == ""
	kinds := 0
	good := false
	for _, kind := range []struct{ shown, read bool }{
		{shown.APIKey != "", true},
		{shown.Login != "" || shown.Password != "", shown.Login != "" && shown.Password != ""},
		{shown.Token != "", numbered},
		{login != "" || session != "", false},
		{basic, false},
	} {
		if kind.shown {
			kinds++
			good = kind.read || write
		}
	}
	return kinds == 1 && good
}

func tooOften(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	failed := failure(mapping.CodeRateLimited, mapping.ReasonRateLimited, "There were too many calls of this caller. Ask again later.", nil)
	failed.RetryAfter = wait
	return failed
}
