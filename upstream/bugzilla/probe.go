package bugzilla

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

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
	version, root, missing, err := findVersion(ctx, client, name, base)
	below := mapping.Dialect{Root: root}.Below()
	if missing && root != "" && !found.Known { // with a configured dialect Portico uses the first path only
		err = nil
	}
	at := *options.URL
	at.User, at.RawQuery, at.Path = nil, "", strings.TrimRight(at.Path, "/")+below+"/"
	switch {
	case err != nil && below != "":
		return found, fmt.Errorf("no /rest/version; the tracker was found at %s: set trackers.%s.url to that", &at, name)
	case err != nil:
		return found, err
	case !found.Known:
		found.Dialect = mapping.DialectOfVersion(version)
	}
	found.Version = version
	if below != "" {
		found.Notes = []string{fmt.Sprintf("found at %s: set trackers.%s.url to that", &at, name)}
	}
	if found.Dialect.JSONRPC {
		err = found.probeJSONRPC(ctx, client, base+below)
	}
	return found, err
}

// findVersion requests the version of a tracker with a name at each path that its REST interface can have, until there is one, and returns
// that path, empty where there is none. missing says that nothing is at the first path, and then err is what was there.
func findVersion(ctx context.Context, client *http.Client, name, base string) (version, root string, missing bool, err error) {
	version, missing, err = versionAt(ctx, client, name, base+restRoot)
	if !missing {
		return version, restRoot, false, err
	}
	for _, root := range Roots()[1:] {
		if version, _, otherErr := versionAt(ctx, client, name, base+root); otherErr == nil {
			return version, root, true, err
		}
	}
	return "", "", true, err
}

// versionAt requests the version below one path. missing says that there is nothing.
func versionAt(ctx context.Context, client *http.Client, name, address string) (version string, missing bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/version", nil)
	if err != nil {
		return "", false, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", false, err
	}
	defer response.Body.Close()
	if to, err := response.Location(); err == nil {
		return "", false, fmt.Errorf("the tracker redirects to %s://%s%s: is that its address? If that is its own address, set trackers.%s.host: %[1]s://%[2]s",
			to.Scheme, to.Host, to.EscapedPath(), name)
	}
	var found struct{ Version string }
	err = json.NewDecoder(io.LimitReader(response.Body, maxProbed)).Decode(&found)
	// An operator's terminal might obey characters that cannot be printed.
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	switch {
	case err != nil:
		err = fmt.Errorf("HTTP %d without JSON where a tracker tells its version: this is no tracker; check trackers.%s.url", response.StatusCode, name)
	case found.Version == "":
		err = errors.New("a response without a version: this may be no tracker")
	case len(found.Version) > 100 || strings.ContainsFunc(found.Version, unprintable):
		err = errors.New("an invalid version: this may be no tracker")
	}
	return found.Version, response.StatusCode == http.StatusNotFound, err
}

// probeJSONRPC checks that the web server lets JSON-RPC through, and notes it where it does not.
func (p *Probed) probeJSONRPC(ctx context.Context, client *http.Client, base string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/jsonrpc.cgi",
		strings.NewReader(`{"method":"Bugzilla.version","params":[{}],"id":1}`))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var found map[string]any
	if json.NewDecoder(io.LimitReader(response.Body, maxProbed)).Decode(&found) != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("/jsonrpc.cgi is refused (HTTP %d): product names with a slash or with other characters than ASCII "+
			"cannot be read, and hide_keys cannot work", response.StatusCode))
	}
	return nil
}
