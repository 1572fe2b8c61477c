package main

import (
	"fmt"
	"net"
	"net/url"

	"portico/cache"
)

// validateRedis checks that there is exactly one way to reach Redis.
func validateRedis(r *RedisConfig, l *problemList, lookup func(string) (string, bool)) {
	const path = "cache.redis"
	switch {
	case r.URL == "" && len(r.Addrs) == 0:
		l.errorf(path, "names no server: write embedded, a URL, or addrs")
	case r.URL != "" && len(r.Addrs) > 0:
		l.errorf(path+".addrs", "and url exclude each other")
	case r.Embedded() && (r.Username != "" || r.PasswordFile != "" || r.PasswordEnv != "" || r.TLS != TLSConfig{}):
		l.errorf(path, "is embedded, which has no password and no TLS")
	case r.URL != "" && !r.Embedded():
		validateRedisURL(r.URL, l)
	}
	for i, addr := range r.Addrs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" || checkPort(port) != nil {
			l.errorf(fmt.Sprintf("%s.addrs[%d]", path, i), "%q is not host:port", addr)
		}
	}
	if r.MasterName != "" && len(r.Addrs) == 0 {
		l.errorf(path+".master_name", "needs addrs, the addresses of the Sentinels")
	}
	warnIdleRedis(r, l)
	if _, err := r.Password(lookup); err != nil {
		l.errorf(secretKey(path+".password", r.PasswordFile, r.PasswordEnv), "%s", err)
	}
	validateTLS(r.TLS, path+".tls", l)
}

// warnIdleRedis points out keys that do nothing, since who sets them believes that they
// protect something.
func warnIdleRedis(r *RedisConfig, l *problemList) {
	const path = "cache.redis"
	if r.Embedded() {
		return
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return // which is said elsewhere
	}
	if (r.TLS != TLSConfig{}) && !r.TLS.Enabled && u.Scheme != "rediss" {
		l.warnf(path+".tls", "does nothing and the connection is in clear: set enabled, or begin the URL with rediss://")
	}
	_, password := u.User.Password()
	if r.Username != "" && r.PasswordFile == "" && r.PasswordEnv == "" && !password {
		l.warnf(path+".username", "does nothing without password_file or password_env")
	}
}

// validateRedisURL checks the URL of a Redis server outside the process, with the
// reader that start-up uses.
func validateRedisURL(text string, l *problemList) {
	const path = "cache.redis"
	if _, err := cache.ParseRedis(text); err != nil {
		l.errorf(path, "%s: %s", redactURL(text), err)
		return
	}
	if u, err := url.Parse(text); err == nil {
		if err := checkPort(u.Port()); err != nil {
			l.errorf(path, "%s: %s", redactURL(text), err)
		}
		warnPassword(u, path, l)
	}
}
