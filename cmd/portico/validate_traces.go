package main

import (
	"errors"
	"net/url"
	"strings"
)

// validateTraces checks where traces are sent and what goes along.
func validateTraces(c *Config, l *problemList, lookup func(string) (string, bool)) {
	settings := &c.Traces
	if _, err := settings.Headers(lookup); err != nil {
		l.errorf(secretKey("traces.headers", settings.HeadersFile, settings.HeadersEnv), "%s", err)
	}
	validateTLS(settings.TLS(), "traces", l)
	if settings.Endpoint == "" {
		return
	}
	if err := checkEndpoint(settings.Endpoint); err != nil {
		l.errorf("traces.endpoint", "%s: %s", redactURL(settings.Endpoint), err)
	} else if u, _ := url.Parse(settings.Endpoint); sameListener(u, c.Listen) || sameListener(u, c.Admin.Listen) {
		l.errorf("traces.endpoint", "%s is where Portico itself listens", settings.Endpoint)
	}
	if strings.HasPrefix(settings.Endpoint, "http:") && settings.CAFile != "" {
		l.warnf("traces.endpoint", "is not https, so ca_file does nothing")
	}
}

// checkEndpoint checks the address of a collector.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("is not a URL") // the error of url.Parse repeats the text
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("has no host")
	case u.User != nil:
		return errors.New("must not hold a name or password: use headers_file or headers_env")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must not have a query or fragment")
	}
	return checkPort(u.Port())
}
