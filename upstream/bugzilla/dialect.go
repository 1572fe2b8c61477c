package bugzilla

import (
	"context"
	"errors"
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
	asking  chan struct{} // closed when the question under way is over; nil when there is none
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
// While the tracker does not answer it is taken for a stock one. One caller asks,
// and the others wait for that only as long as their own contexts last.
func (c *Client) Dialect(ctx context.Context) mapping.Dialect {
	d := c.dialect
	for {
		settled, asking, mine := d.begin()
		switch {
		case settled:
			return d.known()
		case mine:
			c.askDialect(ctx)
			return d.known()
		}
		select {
		case <-asking: // by an answer, by none, or because the one who asked went away
		case <-ctx.Done():
			return d.known()
		}
	}
}

// begin tells that there is nothing to ask at present, who is asking, or that it
// is the caller's turn to ask, who then must end the question.
func (d *dialects) begin() (settled bool, asking <-chan struct{}, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pinned || time.Now().Before(d.again) {
		return true, nil, false
	}
	if d.asking == nil {
		d.asking = make(chan struct{})
		mine = true
	}
	return false, d.asking, mine
}

func (d *dialects) known() mapping.Dialect {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialect
}

// askDialect asks without holding the lock, because a tracker that hangs would
// hold up everybody who only wants to know what is known.
func (c *Client) askDialect(ctx context.Context) {
	d := c.dialect
	var version, root string
	err := errNotAsked // should asking panic
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.end(ctx, version, root, err)
	}()
	version, root, err = d.ask(ctx)
	if err == nil {
		c.logger.Info("dialect pinned", "version", version, "dialect", mapping.DialectOfVersion(version).Name, "root", root)
	}
}

var errNotAsked = errors.New("the question for the version was not asked to its end")

// end takes the answer; d.mu is held. That a caller went away says nothing about
// the tracker, so another one asks at once.
func (d *dialects) end(ctx context.Context, version, root string, err error) {
	close(d.asking)
	d.asking = nil
	switch {
	case err == nil:
		d.version, d.dialect, d.pinned = version, mapping.DialectOfVersion(version), true
		d.dialect.Root = root
	case !errors.Is(ctx.Err(), context.Canceled):
		d.again = time.Now().Add(retryVersion)
	}
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
	ctx = transport.WithReadOperation(ctx, "version")
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
