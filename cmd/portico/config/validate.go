package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/cache"
	"portico/upstream/canary/compare"
	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// checker finds what no single value can tell: whether values fit together, and whether the files that they name are there.
type checker struct {
	*Config
	problems
	variables Variables
}

// Problems returns all problems of a configuration that Load has read or a program has made. It reads the secrets.
func (c *Config) Problems(variables Variables) []Problem {
	k := &checker{c, problems{origins: c.origins}, variables}
	walk("", reflect.ValueOf(c).Elem(), "", k.files)
	k.listeners()
	if info, err := os.Stat(cmp.Or(c.Blobs.Dir, ".")); err != nil || !info.IsDir() {
		k.errorf("blobs.dir", "%s is not a directory that can be read", c.Blobs.Dir)
	}
	k.trackers()
	k.callers()
	k.rules("switchover", c.Switchover.RuleFile, SortedKeys(c.Callers))
	k.ids()
	k.journal()
	k.credentials()
	k.canary()
	k.redis()
	k.state()
	if c.Traces.Endpoint != "" {
		k.baseURL("traces.endpoint", c.Traces.Endpoint, "use headers_file or headers_env")
	}
	return k.list
}

// files checks one value: that the files and variables that it names are there and fit. It keeps the secrets in them.
func (c *checker) files(k key) {
	var err error
	switch value := k.value.Interface().(type) {
	case Secret:
		bound, _ := strconv.Atoi(k.tag.Get("min"))
		err = value.Read(c.variables)
		k.value.Set(reflect.ValueOf(value))
		switch {
		case err != nil || !value.Given():
		case len(value.text) < bound:
			err = fmt.Errorf("is shorter than %d bytes", bound)
		case k.tag.Get("is") != "bytes" && !is(value.text, "secret"): // no client shows it in a header
			err = fmt.Errorf("is not %s", formats["secret"].what)
		case k.path == "traces.headers_":
			_, err = c.Traces.ReadHeaders()
		}
		k.path = join(k.path, value.source())
	case KeyPair:
		k.path = join(k.path, "cert_file")
		settings, failed := TLSFiles{KeyPair: value}.Client()
		if err = failed; err == nil && value.On() {
			if ends := settings.Certificates[0].Leaf.NotAfter; ends.Before(time.Now()) {
				c.warnf(k.path, "its certificate ended on %s", ends.Format(time.DateOnly))
			}
		}
	case string:
		if k.tag.Get("holds") == "certificates" {
			_, err = TLSFiles{CAFile: value}.Client()
		}
	}
	if err != nil {
		c.errorf(k.path, "%s", err)
	}
}

// listeners checks both addresses against each other, and that the operators' one is not open to other machines without
// authentication.
func (c *checker) listeners() {
	admin := &c.Admin
	own, ownPort, _ := net.SplitHostPort(c.Listen)
	host, port, _ := net.SplitHostPort(admin.Listen)
	if leadsTo(host, port, c.Listen) || port == ownPort && port != "0" && (everyHost(own) || everyHost(host)) {
		c.errorf("admin.listen", "is %s, which listen (%s) takes already", admin.Listen, c.Listen)
	}
	if admin.TLS.ClientCAFile != "" && !admin.TLS.On() {
		c.errorf("admin.tls.client_ca_file", "needs cert_file and key_file: without TLS no client shows a certificate")
	}
	switch {
	case admin.OpenToAll(admin.Listen):
		c.errorf("admin.listen", "%s is open to other machines without authentication: "+
			"set admin.token_file, admin.token_env or admin.tls.client_ca_file", admin.Listen)
	case admin.Token.text != "" && !admin.TLS.On() && toOthers(admin.Listen):
		c.warnf("admin.listen", "%s is open to other machines, and the token goes there in clear: set admin.tls", admin.Listen)
	}
}

// leadsTo reports whether a connection to a host and port reaches a listener. Port 0 is a free one, which no connection reaches.
func leadsTo(host, port, listener string) bool {
	own, ownPort, _ := net.SplitHostPort(listener)
	return port == ownPort && port != "0" && (host == own || loopback(host) && (everyHost(own) || loopback(own)))
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

// trackers checks every tracker and the choice between them.
func (c *checker) trackers() {
	names := SortedKeys(c.Trackers)
	for _, name := range names {
		t, path := c.Trackers[name], "trackers."+name
		if t.URL == "" {
			c.errorf(path+".url", "is missing")
		} else {
			c.baseURL(path+".url", t.URL, "callers bring their own credentials")
		}
	}
	for key, name := range map[string]string{"primary": c.Primary, "candidate": c.Candidate} {
		if _, known := c.Trackers[name]; !known && name != "" && len(names) > 0 {
			c.errorf(key, "%q is not one of the trackers (%s)", name, strings.Join(names, ", "))
		}
	}
	switch {
	case len(names) == 0:
		c.errorf("trackers", "is empty: name at least one, or give --config FILE or --tracker URL")
	case c.Primary == "":
		c.errorf("primary", "is missing: say which of %s serves clients", strings.Join(names, ", "))
	case c.Candidate == c.Primary:
		c.errorf("candidate", "%q is the primary tracker already", c.Candidate)
	}
	if c.Candidate == "" && len(c.Switchover.Rules) > 0 {
		c.errorf("switchover.rules", "need a second tracker: say which one is the candidate")
	}
}

// SentHost returns the address that requests to the tracker name, the zero one where it is that of the URL.
func (t *Tracker) SentHost() transport.Host {
	if t.Host == "" {
		return transport.Host{}
	}
	scheme, name, given := strings.Cut(t.Host, "://")
	if !given {
		name = t.Host
		scheme, _, _ = strings.Cut(t.URL, "://")
	}
	return transport.Host{Name: name, Scheme: scheme}
}

// baseURL checks the address of a tracker or a collector. login is what to use in place of a name and password.
func (c *checker) baseURL(key, text, login string) {
	u, err := parseURL(text, "write http://HOST:PORT/ or https://HOST/")
	problem, last, port := "", path.Base(u.Path), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	switch {
	case err != nil:
		problem = err.Error()
	case u.Scheme != "http" && u.Scheme != "https":
		problem = "must begin with http:// or https://"
	case u.Hostname() == "" || !is(u.Host, "host"):
		problem = "needs a host, which is a name in ASCII (xn--… for others) or an address, and no port beyond 65535"
	case u.User != nil:
		problem = "must not hold a name or password: " + login
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		problem = "must not have a query or fragment"
	case u.Path != "" && !is(u.Path, "path"):
		problem = "must not have . or .. in its path"
	case last == "rest" || last == "rest.cgi":
		problem = "is the REST interface: give the front page, without /" + last
	case leadsTo(u.Hostname(), port, c.Listen), leadsTo(u.Hostname(), port, c.Admin.Listen):
		problem = "is where Portico itself listens"
	}
	if problem != "" {
		c.errorf(key, "%s: %s", RedactURL(text), problem)
	}
}

// parseURL parses a URL, which is never nil. Errors do not repeat the text, which may hold a password.
func parseURL(text, remedy string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return &url.URL{}, errors.New("is not a URL; " + remedy)
	}
	return u, nil
}

// parseDatabase is parseURL for a database, whose password may have any character.
func parseDatabase(text string) (*url.URL, error) {
	const remedy = "in a password write % as %25, / as %2F, ? as %3F and # as %23"
	u, err := parseURL(text, remedy)
	if strings.Contains(u.EscapedPath(), "@") {
		err = errors.New("has an @ behind its host; " + remedy)
	}
	return u, err
}

// rules checks rules, which stand in a section, with the code that start-up uses.
func (p *problems) rules(section string, r switchover.RuleFile, callers []string) {
	if (r.Passthrough.Reads == "") != (r.Passthrough.Writes == "") {
		p.errorf(join(section, "passthrough"), "needs both reads and writes, or neither")
	}
	for _, found := range r.Table().Problems(callers) {
		p.listed(section, "rules", found)
	}
}

// ruleKeys are the keys of the configuration for the members of a rule that it calls otherwise.
var ruleKeys = map[string]string{
	"products": "product", "components": "component", "operations": "operation", "callers": "caller", "user_agents": "user_agent",
}

// listed reports a problem of an entry of a list in a section, or of a key of the section where Rule is negative.
func (p *problems) listed(section, list string, found switchover.Problem) {
	if found.Rule >= 0 {
		section = fmt.Sprintf("%s[%d]", join(section, list), found.Rule)
	}
	report := p.errorf
	if found.Warning {
		report = p.warnf
	}
	report(join(section, cmp.Or(ruleKeys[found.Field], found.Field)), "%s", found.Message)
}

// ids checks the rules about ids and names.
func (c *checker) ids() {
	writesBoth := func(r switchover.Rule) bool { return r.Writes.New() || r.Replicate }
	for _, found := range c.Switchover.Settings.Problems(slices.ContainsFunc(c.Switchover.Rules, writesBoth)) {
		c.errorf("switchover."+found.Key, "%s", found.Message)
	}
}

// journal checks that what rules want to replicate can be recorded.
func (c *checker) journal() {
	settings := &c.Switchover.Journal
	if at, err := settings.readKeys(); err != nil {
		c.errorf("switchover.journal."+at, "%v", err)
	}
	if info, err := os.Stat(settings.Spool); settings.Key.Given() && (settings.Spool == "" || err == nil && !info.IsDir()) {
		c.errorf("switchover.journal.spool", "%q is not a directory", settings.Spool)
	}
	replicates := func(r switchover.Rule) bool { return r.Replicate }
	if slices.ContainsFunc(c.Switchover.Rules, replicates) && !settings.Key.Given() {
		c.errorf("switchover.journal", "rules replicate, so it needs key_file or key_env: at least 16 random bytes that encrypt what is recorded")
	}
}

// canary checks the comparison.
func (c *checker) canary() {
	settings := &c.Canary
	switch {
	case settings.Isolated && settings.Follows:
		c.errorf("canary.isolated", "and follows exclude each other: the candidate would get each write twice")
	case settings.Isolated && settings.Marker == "":
		c.errorf("canary.isolated", "needs a marker that proves it")
	}
	_, found := compare.NewRules(settings.Equivalences, time.Now())
	for _, p := range found {
		c.listed("canary", "equivalences", switchover.Problem(p))
	}
}

// redis checks that there is exactly one way to reach Redis.
func (c *checker) redis() {
	const key = "cache.redis"
	if c.Cache.LocalTTL > c.Cache.TTL {
		c.errorf("cache.local_ttl", "%s is longer than ttl (%s)", c.Cache.LocalTTL, c.Cache.TTL)
	}
	r := &c.Cache.Redis
	u, err := parseDatabase(r.URL)
	switch {
	case r.URL == "" && len(r.Addrs) == 0:
		c.errorf(key, "names no server: write embedded, a URL, or addrs")
	case r.URL != "" && len(r.Addrs) > 0:
		c.errorf(key+".addrs", "and url exclude each other")
	case r.URL != "":
		if err == nil {
			_, err = cache.ParseRedis(r.URL)
		}
		if err != nil {
			c.errorf(key, "%s: %s", RedactURL(r.URL), err)
		}
		c.warnPassword(u, key)
	}
}

// warnPassword warns of a password in the file. The environment is the place for a URL that needs one.
func (c *checker) warnPassword(u *url.URL, key string) {
	_, has := u.User.Password()
	has = has || u.Query().Get("password") != "" // PostgreSQL takes it there, too
	if has && !strings.HasPrefix(c.origin(key).source, envPrefix) {
		c.warnf(key, "holds a password in clear: better set %s in the environment", envName(key))
	}
}

// state checks where durable state is kept.
func (c *checker) state() {
	if strings.HasPrefix(c.State, "sqlite:") {
		return
	}
	u, err := parseDatabase(c.State)
	if err != nil {
		c.errorf("state", "%s", err)
	}
	c.warnPassword(u, "state")
	if c.Cache.Redis.Embedded() && c.Cache.Scope != "off" {
		c.warnf("cache.redis", "is embedded, so each process has a cache of its own, but state is PostgreSQL, which several processes share: "+
			"name a Redis server that they share")
	}
}

// NeedsStore reports whether Portico opens the store.
func (c *Config) NeedsStore() bool { return c.Candidate != "" || len(c.Switchover.IDs) > 0 }

// StateProblems returns those that start-up would meet when it opens the store, as far as they can be known without a connection.
// A command that only explains a request does not need the store.
func (c *Config) StateProblems() []Problem {
	p := problems{origins: c.origins}
	if err := state.Check(c.State); err != nil && c.NeedsStore() {
		p.errorf("state", "%s", err)
	}
	return p.list
}
