package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// configured says that the dialect is never requested.
	configured bool
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
	d.dialect, d.configured, d.pinned = dialect, true, true
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
			c.askDialect(ctx)
		}
	case <-ctx.Done():
	}
	dialect, _ = c.dialect.known()
	return dialect
}

// askDialect requests the version. A caller that went away is not a failure of the tracker, so another caller may make a
// request at once.
func (c *Client) askDialect(ctx context.Context) {
	version, root, err := c.version(ctx)
	d := c.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.version, d.dialect, d.pinned = version, mapping.DialectOfVersion(version), true
		d.dialect.Root = root
		c.logger.Info("dialect pinned", "version", version, "dialect", d.dialect.Name, "root", root)
	case !errors.Is(ctx.Err(), context.Canceled):
		d.again = time.Now().Add(retryVersion)
	}
}

// Pinned returns the dialect for a status page without a request to the tracker: its
// name, the version it was told from, and whether it is certain.
func (c *Client) Pinned() (dialect, version string, certain bool) {
	d := c.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialect.Name, d.version, d.pinned
}

// version sends GET /rest/version, which needs no login, and where that is not a
// resource of a tracker tries the other roots in turn. It returns the root that worked.
func (c *Client) version(ctx context.Context) (version, root string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ctx = transport.With(ctx, func(t *transport.Call) { t.Operation, t.Stream = versionOperation, false })
	version, missing, err := c.versionBelow(ctx, restRoot)
	if !missing {
		c.absent.Store(false)
		return version, restRoot, err
	}
	for _, root := range Roots()[1:] {
		if version, _, otherErr := c.versionBelow(ctx, root); otherErr == nil {
			c.absent.Store(false)
			return version, root, nil
		}
	}
	if !c.absent.Swap(true) {
		c.logger.Warn("no tracker responds at this address: GET /rest/version has status 404 and no JSON; check its url")
	}
	return "", "", err
}

// Absent reports whether the request for the version found no tracker, but a web server that has nothing there.
func (c *Client) Absent() bool { return c.absent.Load() }

// versionBelow requests the version under one path. It reports apart that there is
// nothing there from all other failures.
func (c *Client) versionBelow(ctx context.Context, root string) (version string, missing bool, err error) {
	request := c.rest.R().SetContext(ctx).SetHeader("Accept", "application/json")
	response, err := request.Execute(http.MethodGet, c.base+root+"/version")
	if err != nil {
		return "", false, withoutURL(err)
	}
	body := response.RawBody()
	text, err := io.ReadAll(io.LimitReader(body, 4<<10))
	err = errors.Join(err, body.Close())
	members, _ := mapping.ParseMembers(text)
	version, ok := mapping.Text(members.Get("version"))
	if err == nil && !ok {
		err = errors.New("the tracker's response to /rest/version has no version")
	}
	return version, err != nil && response.StatusCode() == http.StatusNotFound, err
}

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
