package bugzilla

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream/transport"
)

// retryVersion is how long an unanswered question for the version is not
// repeated, so that a tracker that is down is not asked before every call.
const retryVersion = time.Second

// dialects finds out which dialect a tracker speaks and keeps it.
type dialects struct {
	ask func(context.Context) (version, root string, err error)

	mu      sync.Mutex
	pinned  bool
	dialect mapping.Dialect
	version string
	again   time.Time
}

func newDialects(name string, ask func(context.Context) (version, root string, err error)) (*dialects, error) {
	if name == "" || name == "auto" {
		return &dialects{ask: ask, dialect: mapping.Bugzilla5()}, nil
	}
	dialect, ok := mapping.DialectNamed(name)
	if !ok {
		return nil, fmt.Errorf("%q is not a dialect: auto, bugzilla-5 or bmo", name)
	}
	return &dialects{pinned: true, dialect: dialect}, nil
}

// Dialect gives the tracker's dialect, asking for it when it is not known yet.
// While the tracker does not answer it is taken for a stock one.
func (c *Client) Dialect(ctx context.Context) mapping.Dialect {
	d := c.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pinned || time.Now().Before(d.again) {
		return d.dialect
	}
	version, root, err := d.ask(ctx)
	if err != nil {
		d.again = time.Now().Add(retryVersion)
		return d.dialect
	}
	d.version, d.dialect, d.pinned = version, mapping.DialectOfVersion(version), true
	d.dialect.Root = root
	c.logger.Info("dialect pinned", "version", version, "dialect", d.dialect.Name, "root", root)
	return d.dialect
}

// Pinned tells the dialect for a status page without asking the tracker: its
// name, the version it was told from, and whether it is certain.
func (c *Client) Pinned() (dialect, version string, certain bool) {
	d := c.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialect.Name, d.version, d.pinned
}

// version asks GET /rest/version, which needs no login, and where that is no
// resource of a tracker GET /rest.cgi/version. It tells which of the two answered.
func (c *Client) version(ctx context.Context) (version, root string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ctx = transport.WithRead(transport.WithOperation(ctx, "version"))
	version, missing, err := c.versionBelow(ctx, restRoot)
	if !missing {
		return version, restRoot, err
	}
	if version, _, otherErr := c.versionBelow(ctx, cgiRoot); otherErr == nil {
		return version, cgiRoot, nil
	}
	return "", "", err
}

// versionBelow asks for the version under one path. It tells apart that there is
// nothing there from all other failures.
func (c *Client) versionBelow(ctx context.Context, root string) (version string, missing bool, err error) {
	request := c.rest.R().SetContext(ctx).SetHeader("Accept", "application/json")
	response, err := request.Execute(http.MethodGet, c.base+root+"/version")
	if err != nil {
		return "", false, withoutURL(err)
	}
	body := response.RawBody()
	text, err := io.ReadAll(io.LimitReader(body, 4<<10))
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		version, err = versionOf(text)
	}
	return version, err != nil && response.StatusCode() == http.StatusNotFound, err
}

func versionOf(text []byte) (string, error) {
	members, err := mapping.ParseMembers(text)
	if err != nil {
		return "", fmt.Errorf("read the tracker's version: %w", err)
	}
	value := members.Get("version")
	if value.Kind() != '"' {
		return "", fmt.Errorf("the tracker's answer to /rest/version has no version")
	}
	version, err := jsontext.AppendUnquote(nil, value)
	return string(version), err
}
