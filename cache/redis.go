package cache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis says where the shared level is: embedded when there are no addresses, one server, the Sentinels of one when MasterName
// is set, or a cluster when there are several addresses.
type Redis struct {
	// Addrs are host:port pairs, or the path of one socket.
	Addrs []string
	// MasterName is the name that the Sentinels know the primary by.
	MasterName string
	// Cluster says that a single address is the entry to a cluster.
	Cluster bool
	// Username and Password are the ACL user's, or the password alone.
	Username, Password string
	// DB is the number of the database; a cluster has only 0.
	DB int
	// TLS is set for an encrypted connection.
	TLS *tls.Config
	// Timeout is the maximum wait for one command; 0 means 50ms.
	Timeout time.Duration
	// DialTimeout is the maximum time that making a connection may take in the background; 0 means 1s. Requests wait for it no
	// longer than Timeout.
	DialTimeout time.Duration
}

// String shows where Redis is, and no password.
func (r Redis) String() string {
	if r.embedded() {
		return "embedded"
	}
	return strings.Join(r.Addrs, ",")
}

// GoString shows what String does.
func (r Redis) GoString() string { return r.String() }

// embedded tells whether the server runs inside this process.
func (r Redis) embedded() bool { return len(r.Addrs) == 0 }

// ParseRedis reads embedded, redis://[user:password@]host[:port][/db], rediss:// likewise with TLS, and
// unix://[user:password@]/path[?db=n]. The query cluster=true says that the address is the entry to a cluster. Errors never
// show the text, as it may hold a password.
func ParseRedis(text string) (Redis, error) {
	if text == "embedded" {
		return Redis{}, nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme == "unix") != (u.Hostname() == "") {
		return Redis{}, errors.New("the Redis address is not a URL of the form redis://host, rediss://host or unix:///path")
	}
	if number, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || number == 0) {
		return Redis{}, errors.New("the Redis address has a port that is not one from 1 to 65535")
	}
	r, query := Redis{}, u.Query()
	for name, values := range query {
		switch name {
		case "db":
		case "cluster":
			if r.Cluster, err = strconv.ParseBool(values[0]); err != nil {
				return Redis{}, errors.New("the Redis address: cluster is neither true nor false")
			}
		default:
			return Redis{}, fmt.Errorf("the Redis address has the option %q, and there are only db and cluster", name)
		}
	}
	query.Del("cluster")
	u.RawQuery = query.Encode()
	if !slices.Contains([]string{"redis", "rediss", "unix"}, u.Scheme) {
		return Redis{}, fmt.Errorf("unsupported scheme %q; use redis://, rediss:// or unix://", u.Scheme)
	}
	parsed, err := redis.ParseURL(u.String())
	if err != nil || parsed.DB < 0 {
		return Redis{}, errors.New("the Redis address has an invalid path or database number")
	}
	r.Addrs, r.DB, r.TLS = []string{parsed.Addr}, parsed.DB, parsed.TLSConfig
	r.Username, r.Password = parsed.Username, parsed.Password
	return r, nil
}

// dial makes a connection that ends with the context. The library's own way to an encrypted one does not, and closing the
// cache would wait for it.
func (r Redis) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: r.DialTimeout}
	if r.TLS == nil {
		return plain.DialContext(ctx, network, address)
	}
	return (&tls.Dialer{NetDialer: plain, Config: r.TLS}).DialContext(ctx, network, address)
}

// client makes the client. Its retries are off, because the tracker serves a waiting read sooner; its log lines are off,
// because they would go to standard error past the program's log.
func (r Redis) client(dial func(context.Context, string, string) (net.Conn, error)) redis.UniversalClient {
	logging.Disable()
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: r.Addrs, MasterName: r.MasterName, IsClusterMode: r.Cluster,
		Username: r.Username, Password: r.Password, DB: r.DB, TLSConfig: r.TLS,
		Dialer:                dial,
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           r.DialTimeout,
		ReadTimeout:           r.Timeout,
		WriteTimeout:          r.Timeout,
		PoolTimeout:           r.Timeout,
		PoolSize:              32,
		PipelinePoolSize:      -1,
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
}
