package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// validate checks what no single value can tell: that values fit together and
// that the files they name are there. Lookup finds the variables that secrets are
// in. It reports all it finds.
func validate(c *Config, l *problemList, lookup func(string) (string, bool)) {
	validateListeners(c, l)
	validateServing(c, l, lookup)
	validateTrackers(c, l)
	validateTwoTrackers(c, l, lookup)
	validatePaths(c, l)
	validateCache(c, l, lookup)
	validateState(c, l)
	validateBounds(c, l)
	validateTraces(c, l, lookup)
}

// validateListeners checks both addresses, each alone and against each other.
func validateListeners(c *Config, l *problemList) {
	front, ok := validateListen(c.Listen, "listen", l)
	back, okAdmin := validateListen(c.Admin.Listen, "admin.listen", l)
	if !ok || !okAdmin {
		return
	}
	if overlap(front, back) {
		l.errorf("admin.listen", "is %s, which listen (%s) takes already", c.Admin.Listen, c.Listen)
	}
}

// hostPort is an address to listen on, taken apart.
type hostPort struct {
	host string
	port int
}

// validateListen checks one address.
func validateListen(address, path string, l *problemList) (hostPort, bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		l.errorf(path, "%q is not an address such as 127.0.0.1:8080 or :8080", address)
		return hostPort{}, false
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		l.errorf(path, "%q is not a port from 0 to 65535", text)
		return hostPort{}, false
	}
	return hostPort{host, int(port)}, true
}

// overlap reports whether two listeners would get in each other's way. Port 0
// asks the system for a free one, so it never does.
func overlap(a, b hostPort) bool {
	if a.port != b.port || a.port == 0 {
		return false
	}
	return a.host == b.host || everyHost(a.host) || everyHost(b.host) ||
		(a.host == "localhost" || b.host == "localhost") && loopback(a.host) && loopback(b.host)
}

// everyHost reports whether an address means all interfaces of the machine.
func everyHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

// loopback reports whether a host name stands for this machine only.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// validateTrackers checks every tracker and the choice between them.
func validateTrackers(c *Config, l *problemList) {
	names := sortedKeys(c.Trackers)
	for _, name := range names {
		validateTracker(c, name, l)
	}
	switch _, known := c.Trackers[c.Primary]; {
	case len(names) == 0:
		l.errorf("trackers", "is empty: name at least one, or use --tracker URL")
	case c.Primary == "":
		l.errorf("primary", "is missing: say which of %s answers", strings.Join(names, ", "))
	case !known:
		l.errorf("primary", "%q is none of the trackers (%s)%s", c.Primary, strings.Join(names, ", "), didYouMean(nearest(c.Primary, names)))
	default:
		for _, name := range names {
			if name != c.Primary && name != c.Candidate {
				l.warnf("trackers."+name, "is neither the primary tracker nor the candidate, so nothing uses it")
			}
		}
	}
}

// validateTracker checks one tracker.
func validateTracker(c *Config, name string, l *problemList) {
	t, path := c.Trackers[name], "trackers."+name
	if t.URL == "" {
		l.errorf(path+".url", "is missing")
	} else if err := checkBaseURL(t.URL); err != nil {
		l.errorf(path+".url", "%s: %s", redactURL(t.URL), err)
	} else if u, _ := url.Parse(t.URL); sameListener(u, c.Listen) || sameListener(u, c.Admin.Listen) {
		l.errorf(path+".url", "%s is where Portico itself listens", t.URL)
	}
	if strings.HasPrefix(t.URL, "http:") && (t.CAFile != "" || t.CertFile != "") {
		l.warnf(path+".url", "is not https, so ca_file and cert_file do nothing")
	}
	validateTLS(t.TLS(), path, l)
}

// checkBaseURL checks the address of a tracker's front page.
func checkBaseURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse repeats the text, with any password in it.
		return fmt.Errorf("is not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("must begin with http:// or https://")
	case u.Hostname() == "":
		return fmt.Errorf("has no host")
	case u.User != nil:
		return fmt.Errorf("must not hold a name or password: callers bring their own credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("must not have a query or fragment")
	case dotSegment(u.Path):
		return fmt.Errorf("must not have . or .. in its path")
	}
	if last := lastSegment(u.Path); last == "rest" || last == "rest.cgi" {
		return fmt.Errorf("is the REST interface: give the front page, without /%s", last)
	}
	return checkPort(u.Port())
}

// checkPort checks the port to connect to; empty is the usual one.
func checkPort(text string) error {
	if port, err := strconv.ParseUint(text, 10, 16); text != "" && (err != nil || port == 0) {
		return fmt.Errorf("has %q for a port, which is none from 1 to 65535", text)
	}
	return nil
}

// dotSegment reports whether a path walks through . or ...
func dotSegment(path string) bool {
	segments := strings.Split(path, "/")
	return slices.Contains(segments, ".") || slices.Contains(segments, "..")
}

// lastSegment is the last segment of a path that is not empty.
func lastSegment(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// sameListener reports whether a URL leads straight back to a listener.
func sameListener(u *url.URL, listen string) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || u.Port() != port || port == "0" {
		return false
	}
	return u.Hostname() == host || loopback(u.Hostname()) && (everyHost(host) || loopback(host))
}

// validatePaths checks the passthrough prefixes and the documentation link.
func validatePaths(c *Config, l *problemList) {
	for i, prefix := range c.Passthrough {
		if !strings.HasPrefix(prefix, "/") || dotSegment(prefix) {
			l.errorf(fmt.Sprintf("passthrough[%d]", i), "%q is not a path that begins with / and has no dot segments", prefix)
		}
	}
	if u, err := url.Parse(c.API.Documentation); err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		l.errorf("api.documentation", "is not an http or https URL")
	}
}

// validateCache checks the cache and the way to Redis.
func validateCache(c *Config, l *problemList, lookup func(string) (string, bool)) {
	settings := &c.Cache
	if settings.LocalTTL > settings.TTL {
		l.errorf("cache.local_ttl", "%s is longer than ttl (%s)", settings.LocalTTL, settings.TTL)
	}
	if _, err := settings.Secret(lookup); err != nil {
		l.errorf(secretKey("cache.secret", settings.SecretFile, settings.SecretEnv), "%s", err)
	}
	validateRedis(&settings.Redis, l, lookup)
}

// warnPassword points out a password where many can read it. The environment
// is the place for a URL that needs one.
func warnPassword(u *url.URL, path string, l *problemList) {
	_, has := u.User.Password()
	has = has || u.Query().Get("password") != "" // PostgreSQL takes it there, too
	if has && !strings.HasPrefix(l.origin(path).source, envPrefix) {
		l.warnf(path, "holds a password in clear: better set %s in the environment", envName(path))
	}
}

// validateBounds checks limits against each other.
func validateBounds(c *Config, l *problemList) {
	// Whoever lets in little need not know of this threshold.
	if _, chosen := c.origins["blobs.memory"]; chosen && c.Blobs.Memory > c.Limits.Body {
		l.warnf("blobs.memory", "%s is more than limits.body (%s) lets in", c.Blobs.Memory, c.Limits.Body)
	}
	if c.Blobs.Dir != "" {
		if info, err := os.Stat(c.Blobs.Dir); err != nil || !info.IsDir() {
			l.errorf("blobs.dir", "%s is not a folder that can be read", c.Blobs.Dir)
		}
	}
}

// validateTLS checks that the files of a TLS client are there and fit.
func validateTLS(t TLSConfig, path string, l *problemList) {
	if _, err := t.roots(); err != nil {
		l.errorf(path+".ca_file", "%s", err)
	}
	if _, err := t.certificates(); err != nil {
		l.errorf(path+".cert_file", "%s", err)
	}
}
