package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"portico/mapping"
	"portico/upstream/transport"
)

// retryVersion is how long a failed request for the version is not
// repeated, so that it does not precede every call to a tracker that is down.
const retryVersion = time.Second

// versionOperation names the request for the version in measurements.
const versionOperation = "version"

// knownDialect is what is known of the dialect of a tracker. It does not change.
type knownDialect struct {
	mapping.Dialect
	version string
	certain bool
	// again is when the version may be requested after a failure.
	again time.Time
	// absent says that the last request found nothing.
	absent bool
}

// firstDialect is what is known before a request for the version.
func firstDialect(name string) (*knownDialect, error) {
	if name == "" || name == "auto" {
		return &knownDialect{Dialect: mapping.Bugzilla5()}, nil
	}
	dialect, ok := mapping.DialectNamed(name)
	if !ok {
		return nil, fmt.Errorf("%q is not a dialect", name) // the configuration lists those that are
	}
	return &knownDialect{Dialect: dialect, certain: true}, nil
}

// isDue reports whether the version is to be requested.
func (d *knownDialect) isDue() bool { return !d.certain && time.Now().After(d.again) }

// Dialect returns the tracker's dialect. It requests the version when the dialect is not known yet.
// While the tracker does not respond it is taken for a stock one. One caller makes the request,
// and the others wait for it only as long as their own contexts last.
func (c *Client) Dialect(ctx context.Context) mapping.Dialect {
	if c.dialect.Load().isDue() {
		select {
		case c.asking <- struct{}{}:
			if c.dialect.Load().isDue() {
				_ = c.askDialect(ctx) // until another one succeeds, the tracker is taken for a stock one
			}
			<-c.asking
		case <-ctx.Done():
		}
	}
	return c.dialect.Load().Dialect
}

// askDialect sends GET /rest/version, which needs no login. A caller that went away is not a failure of the tracker, so another caller
// may make a request at once.
func (c *Client) askDialect(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	timed = transport.With(timed, func(t *transport.Call) {
		t.Operation, t.Stream, t.Shadow = versionOperation, false, c.options.ForComparison
	})
	version, root, err := findVersion(timed, c.rest.GetClient(), "NAME", c.base) // clients do not see its errors
	before := c.dialect.Load()
	now := *before
	switch {
	case before.certain:
	case err == nil:
		now = knownDialect{Dialect: mapping.DialectOfVersion(version), version: version, certain: true}
		now.Root = root
	case !errors.Is(ctx.Err(), context.Canceled):
		now.again = time.Now().Add(retryVersion)
	}
	now.absent = root == ""
	switch isFirst := c.dialect.CompareAndSwap(before, &now); {
	case isFirst && now.absent && !before.absent:
		c.options.Logger.Warn("no tracker responds at this address: GET /rest/version has status 404 and no JSON; check its url")
	case isFirst && now.certain && !before.certain:
		c.options.Logger.Info("dialect pinned", "version", version, "dialect", now.Name, "root", root)
	}
	return err
}

// Pinned returns the dialect for a status page without a request to the tracker: its
// name, the version it was told from, and whether it is certain.
func (c *Client) Pinned() (dialect, version string, certain bool) {
	d := c.dialect.Load()
	return d.Name, d.version, d.certain
}

// Absent reports whether the request for the version found no tracker, but a web server that has nothing there.
func (c *Client) Absent() bool { return c.dialect.Load().absent }

// IsHealthy reports whether a response to a request for the version, given its status and the beginning of its body, is
// that of a tracker that works. A 4xx is one. A page with status 200 is not: gateways show one while a tracker is away. An
// internal error is not either: a tracker without its database has them with status 200.
func IsHealthy(status int, head []byte) bool {
	if status >= http.StatusBadRequest {
		return status < http.StatusInternalServerError
	}
	members, err := mapping.ParseMembers(head)
	code, _ := mapping.Int(members.Get("code"))
	return err == nil && status < http.StatusMultipleChoices && code != mapping.CodeTrackerFailure
}
