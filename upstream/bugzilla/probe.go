package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"portico/mapping"
)

// Probed is what Probe finds out about a tracker.
type Probed struct {
	Version string
	Dialect mapping.Dialect
	// Known says that the dialect was known before.
	Known bool
	// Notes say what an operator should know.
	Notes []string
}

// maxProbed bounds what is read of a response.
const maxProbed = 1 << 16

// Probe requests the version of a tracker, which every Bugzilla-style server shows to everybody (tracker-behaviour.md section 1), at
// each path that its REST interface can have, and tries JSON-RPC where the dialect needs it. Of the options it uses URL, Dialect and
// Transport. The error of a tracker that does not respond is an *url.Error; others say which key of trackers.NAME to set.
func Probe(ctx context.Context, name string, options Options) (found Probed, err error) {
	client := &http.Client{Transport: options.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	base := strings.TrimRight(options.URL.String(), "/")
	found.Dialect, found.Known = mapping.DialectNamed(options.Dialect)
	version, root, err := findVersion(ctx, client, name, base)
	if err != nil {
		return found, err
	}
	below := mapping.Dialect{Root: root}.Below()
	switch {
	case found.Known && root != restRoot: // with a configured dialect Portico uses the first path only
		return found, fmt.Errorf("no /rest/version; the tracker has %s/version: set trackers.%s.dialect to auto", base+root, name)
	case !found.Known:
		found.Dialect = mapping.DialectOfVersion(version)
	}
	found.Version = version
	if below != "" {
		at := options.URL.JoinPath(below, "/")
		at.User, at.RawQuery = nil, ""
		found.Notes = []string{fmt.Sprintf("found at %s: set trackers.%s.url to that", at, name)}
	}
	if !found.Dialect.JSONRPC {
		return found, nil
	}
	response, members, err := request(ctx, client, http.MethodPost, base+below+jsonRPC, `{"method":"Bugzilla.version","params":[{}],"id":1}`) //nolint:bodyclose // it is read and closed
	if err == nil && members == nil {
		found.Notes = append(found.Notes, fmt.Sprintf("/jsonrpc.cgi is refused (HTTP %d): product names with a slash or with other characters than ASCII "+
			"cannot be read, and hide_keys cannot work", response.StatusCode))
	}
	return found, err
}

// findVersion requests the version of a tracker with a name at each path that its REST interface can have, until there is one, and returns
// that path. It is empty where nothing is at the first path and no version at the others.
func findVersion(ctx context.Context, client *http.Client, name, base string) (version, root string, err error) {
	// /rest is a rewrite of /rest.cgi, which some web servers lack (tracker-behaviour.md section 1). /bugzilla is where many installations
	// have the tracker, so that an address without it is a likely mistake.
	for i, root := range []string{restRoot, "/rest.cgi", "/bugzilla/rest", "/bugzilla/rest.cgi"} {
		version, missing, failed := versionAt(ctx, client, name, base+root)
		switch {
		case failed == nil, i == 0 && !missing:
			return version, root, failed
		case i == 0:
			err = failed
		}
	}
	return "", "", err
}

// validVersion matches what can be a version. An operator's terminal might obey characters that cannot be printed.
var validVersion = regexp.MustCompile(`^[[:print:]]{1,100}$`)

// versionAt requests the version below one path. missing says that there is nothing.
func versionAt(ctx context.Context, client *http.Client, name, address string) (version string, missing bool, err error) {
	response, members, err := request(ctx, client, http.MethodGet, address+"/version", "") //nolint:bodyclose // it is read and closed
	if err != nil {
		return "", false, err
	}
	if to, err := response.Location(); err == nil {
		return "", false, fmt.Errorf("the tracker redirects to %s://%s%s: is that its address? If that is its own address, set trackers.%s.host: %[1]s://%[2]s",
			to.Scheme, to.Host, to.EscapedPath(), name)
	}
	version, _ = mapping.Text(members.Get("version"))
	switch {
	case version == "" && response.StatusCode >= http.StatusInternalServerError: // as BMO and Harmony respond where X-Forwarded-Proto is not https
		err = fmt.Errorf("HTTP %d: the tracker fails; if its own address is an https one, set trackers.%s.host: https://HOST", response.StatusCode, name)
	case version == "":
		err = fmt.Errorf("HTTP %d without a version in JSON: this is no tracker; check trackers.%s.url", response.StatusCode, name)
	case !validVersion.MatchString(version):
		err = errors.New("an invalid version: this may be no tracker")
	}
	return version, response.StatusCode == http.StatusNotFound, err
}

// request sends a request and returns the response, whose body is closed, with the members of the object in it, nil where there is none.
func request(ctx context.Context, client *http.Client, method, address, body string) (*http.Response, mapping.Members, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxProbed)) // what is cut short is no object
	members, _ := mapping.ParseMembers(text)
	return response, members, nil
}
