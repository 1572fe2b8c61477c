package bugzilla

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"portico/upstream"
	"portico/upstream/transport"
)

// watchInterval is the pause between two requests of WatchRedirect.
const watchInterval = 5 * time.Second

// redirectTarget is where a tracker redirects all requests, empty where it does not.
type redirectTarget = atomic.Pointer[string]

// Redirect returns the scheme and host to which the tracker redirects the request for its version, empty when it does not. BMO and
// Harmony redirect every request whose Host is not that of their urlbase (tracker-behaviour.md section 14).
func (c *Client) Redirect() string { return *c.redirect.Load() }

// WatchRedirect requests the version until the tracker responds or ctx ends, so that Redirect is known without a client's request.
func (c *Client) WatchRedirect(ctx context.Context) {
	for c.askDialect(ctx) != nil && upstream.Pause(ctx, watchInterval) {
		continue
	}
}

// redirects notes redirects to another host and removes their address from responses, so that http.Client neither follows it nor
// fails to parse it: its error would show the address, and hide that a write has reached the tracker.
type redirects struct {
	next http.RoundTripper
	to   *redirectTarget
}

// RoundTrip implements http.RoundTripper.
func (r redirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	// A client's own request may be redirected for another reason, such as a missing login.
	to := elsewhere(request.URL, response)
	if to != *r.to.Load() && (to == "" || transport.CallOf(request.Context()).Operation == versionOperation) {
		r.to.Store(new(to))
	}
	response.Header.Del("Location")
	return response, nil
}

// elsewhere returns the scheme and host that a response redirects to, empty where it does not, or not to another one.
func elsewhere(asked *url.URL, response *http.Response) string {
	to, err := response.Location()
	if err != nil || response.StatusCode/100 != 3 || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" ||
		strings.EqualFold(to.Host, asked.Host) && to.Scheme == asked.Scheme {
		return ""
	}
	return to.Scheme + "://" + to.Host
}
