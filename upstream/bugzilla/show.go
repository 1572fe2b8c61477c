package bugzilla

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// redacted stands in place of a credential.
const redacted = "REDACTED"

// ShowPlan renders the request that the tracker would be sent for a call as a JSON object, without credentials and without the content
// of attachments. Requests to trackers of two dialects can be compared by it. A *mapping.Error says that the dialect has no form for it.
func (c *Client) ShowPlan(ctx context.Context, call upstream.Call) ([]byte, error) {
	dialect := c.Dialect(ctx)
	dialect.Root = "" // the path of the interface is no difference that matters
	planned, err := plan(dialect, call)
	if err != nil {
		return nil, err
	}
	var shown mapping.Members
	shown.SetText("method", planned.Method)
	shown.SetText("path", planned.Path)
	if planned.RPC != "" {
		shown.SetText("rpc", planned.RPC)
	}
	if len(planned.Query) > 0 {
		query, _ := json.Marshal(planned.Query)
		shown.Set("query", query)
	}
	if planned.Body != nil {
		shown.Set("body", planned.Body.AppendJSON(nil))
	}
	return shown.AppendJSON(nil), nil
}

// ReadAddress returns the path and query by which the tracker is asked for a read, empty if it is not asked by GET.
func (c *Client) ReadAddress(ctx context.Context, call upstream.Call) string {
	planned, err := plan(c.Dialect(ctx), call)
	if err != nil || planned.RPC != "" {
		return ""
	}
	return planned.Path + strings.TrimSuffix("?"+planned.Query.Encode(), "?")
}

// SameAddress returns the URL of a tracker in one form, however it is written, and without a login.
func SameAddress(base *url.URL) string {
	return base.Scheme + "://" + strings.ToLower(upstream.HostPort(base)) + strings.TrimRight(base.Path, "/")
}

// DryTransport takes the place of the connections to a tracker. It gets each request instead of the tracker, without credentials: the
// request line and the headers as lines, and the body. Calls get a response that suits every operation.
type DryTransport func(lines []string, body []byte)

// RoundTrip implements http.RoundTripper.
func (show DryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	lines, content, err := showRequest(r)
	if err != nil {
		return nil, err
	}
	show(lines, content)
	body := `{"id":0,"ids":[],"bug":[],"attachment":[],"bugs":{},"attachments":{},"flagtypes":[]}`
	if strings.HasSuffix(r.URL.Path, jsonRPC) {
		body = `{"error":null,"id":1,"result":` + body + `}`
	}
	text := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return http.ReadResponse(bufio.NewReader(strings.NewReader(text)), r)
}

func showRequest(r *http.Request) (lines []string, body []byte, err error) {
	lines = []string{r.Method + " " + redactQuery(*r.URL)}
	if r.Host != "" && r.Host != r.URL.Host {
		lines = append(lines, "Host: "+r.Host)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[name], ", ")
		switch name {
		case "Authorization", "Cookie", "X-Bugzilla-Api-Key", "X-Bugzilla-Token", "X-Bugzilla-Login", "X-Bugzilla-Password":
			value = redacted
		}
		if r.Header.Get(name) != "" {
			lines = append(lines, name+": "+value)
		}
	}
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); len(body) > 0 {
			body = redactBody(body)
		}
	}
	return lines, body, err
}

// redactQuery hides the credentials in the query of a URL.
func redactQuery(address url.URL) string {
	query := address.Query()
	for name := range query {
		if credentialName.MatchString(name) || name == "Bugzilla_api_token" {
			query.Set(name, redacted)
		}
	}
	address.RawQuery, address.User = query.Encode(), nil
	return address.String()
}

// credentialName matches the parameters and members that carry a credential which counts by itself, credentialMember a member with any.
var (
	credentialName   = regexp.MustCompile(`(?i)^(?:bugzilla_)?(?:api_key|login|password|token)$`)
	credentialMember = regexp.MustCompile(`(?i)("(?:bugzilla_)?(?:api_key|login|password|(?:api_)?token)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|[^",}\]]+)`)
)

// redactBody hides the credentials in a JSON body. Of another body, and of one with escapes that could hide a name, it shows the length.
func redactBody(body []byte) []byte {
	if !jsontext.Value(body).IsValid() || bytes.Contains(body, []byte(`\u00`)) {
		return fmt.Appendf(nil, "(%d bytes)", len(body))
	}
	return credentialMember.ReplaceAll(body, []byte(`$1"`+redacted+`"`))
}
