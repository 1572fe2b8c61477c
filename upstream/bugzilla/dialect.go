package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"portico/mapping"
	"portico/upstream/transport"
)

// retryVersion is how long a failed request for the version is not
// repeated, so that it does not precede every call to a tracker that is down.
const retryVersion = time.Second

// versionOperation names the request for the version in measurements.
const versionOperation = "version"

// dialects is what is known of the dialect of a tracker.
type dialects struct {
	// asking holds a value while a caller requests the version.
	asking chan struct{}

	mu      sync.Mutex // guards what follows
	dialect mapping.Dialect
	version string
	pinned  bool
	// again is when the version may be requested after a failure.
	again time.Time
}

func newDialects(name string) (*dialects, error) {
	d := &dialects{dialect: mapping.Bugzilla5(), asking: make(chan struct{}, 1)}
	if name == "" || name == "auto" {
		return d, nil
	}
	dialect, ok := mapping.DialectNamed(name)
	if !ok {
		return nil, fmt.Errorf("%q is not a dialect: auto, bugzilla-5 or bmo", name)
	}
	d.dialect, d.pinned = dialect, true
	return d, nil
}

// known returns the dialect as far as it is known, and whether no request for it is due.
func (d *dialects) known() (dialect mapping.Dialect, settled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialect, d.pinned || time.Now().Before(d.again)
}

// Dialect returns the tracker's dialect. It requests the version when the dialect is not known yet.
// While the tracker does not respond it is taken for a stock one. One caller makes the request,
// and the others wait for it only as long as their own contexts last.
func (c *Client) Dialect(ctx context.Context) mapping.Dialect {
	dialect, settled := c.dialect.known()
	if settled {
		return dialect
	}
	select {
	case c.dialect.asking <- struct{}{}:
		defer func() { <-c.dialect.asking }()
		if _, settled := c.dialect.known(); !settled {
			_ = c.askDialect(ctx) // until another one succeeds, the tracker is taken for a stock one
		}
	case <-ctx.Done():
	}
	dialect, _ = c.dialect.known()
	return dialect
}

// askDialect requests the version. A caller that went away is not a failure of the tracker, so another caller may make a
// request at once.
func (c *Client) askDialect(ctx context.Context) error {
	version, root, err := c.version(ctx)
	d := c.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil && !d.pinned:
		d.version, d.dialect, d.pinned = version, mapping.DialectOfVersion(version), true
		d.dialect.Root = root
		c.options.Logger.Info("dialect pinned", "version", version, "dialect", d.dialect.Name, "root", root)
	case err != nil && !errors.Is(ctx.Err(), context.Canceled):
		d.again = time.Now().Add(retryVersion)
	}
	return err
}

// Pinned returns the dialect for a status page without a request to the tracker: its
// name, the version it was told from, and whether it is certain.
func (c *Client) Pinned() (dialect, version string, certain bool) {
	d := c.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialect.Name, d.version, d.pinned
}

// version sends GET /rest/version, which needs no login, and returns the root that worked.
func (c *Client) version(ctx context.Context) (version, root string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ctx = transport.With(ctx, func(t *transport.Call) { t.Operation, t.Stream = versionOperation, false })
	version, root, missing, err := findVersion(ctx, c.rest.GetClient(), "NAME", c.base) // whose errors nobody sees
	if root != "" {
		c.absent.Store(false)
	} else if !c.absent.Swap(true) {
		c.options.Logger.Warn("no tracker responds at this address: GET /rest/version has status 404 and no JSON; check its url")
	}
	if missing && root != "" {
		err = nil
	}
	return version, root, err
}

// Absent reports whether the request for the version found no tracker, but a web server that has nothing there.
func (c *Client) Absent() bool { return c.absent.Load() }

// IsHealthy reports whether a response to a request for the version, given its status and the beginning of its body, is
// that of a tracker that works. A 4xx is one. A page with status 200 is not: gateways show one while a tracker is away. An
// internal error is not either: a tracker without its database has them with status 200.
func IsHealthy(status int, head []byte) bool {
	if status >= http.StatusBadRequest {
		return status < http.StatusInternalServerError
	}
	members, err := mapping.ParseMembers(head)
	if err != nil || status >= http.StatusMultipleChoices {
		return false
	}
	code, _ := mapping.Int(members.Get("code"))
	return code != mapping.CodeTrackerFailure
}
