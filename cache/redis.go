package cache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis says where the shared level is: embedded when there are no addresses, one
// server, the Sentinels of one when MasterName is set, or a cluster when there
// are several addresses.
type Redis struct {
	// Addrs are host:port pairs, or the path of one socket.
	Addrs []string
	// MasterName is the name that the Sentinels know the primary by.
	MasterName string
	// Cluster says that a single address is the entry to a cluster.
	Cluster bool
	// Username and Password are the ACL user's, or the password alone.
	Username, Password string
	// SentinelUsername and SentinelPassword are what the Sentinels ask for.
	SentinelUsername, SentinelPassword string
	// DB is the number of the database; a cluster has only 0.
	DB int
	// TLS is set for an encrypted connection.
	TLS *tls.Config
	// Timeout is the longest wait for one command; 0 means 50ms.
	Timeout time.Duration
	// DialTimeout is the longest time that making a connection may take in the
	// background; 0 means 1s. Requests never wait longer than Timeout for it.
	DialTimeout time.Duration
	// EmbeddedBytes bounds what the embedded server holds; 0 means 128 MiB.
	EmbeddedBytes int
}

// String shows where Redis is, and no password.
func (r Redis) String() string {
	if r.Embedded() {
		return "embedded"
	}
	return strings.Join(r.Addrs, ",")
}

// GoString shows what String does.
func (r Redis) GoString() string { return r.String() }

// Embedded tells whether the server runs inside this process.
func (r Redis) Embedded() bool { return len(r.Addrs) == 0 }

// same tells whether two of them lead to the same server in the same way.
func (r Redis) same(other Redis) bool {
	secured := sameTLS(r.TLS, other.TLS)
	r.TLS, other.TLS = nil, nil
	return secured && reflect.DeepEqual(r, other)
}

func sameTLS(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ServerName == b.ServerName && a.MinVersion == b.MinVersion && a.InsecureSkipVerify == b.InsecureSkipVerify &&
		a.RootCAs.Equal(b.RootCAs) && reflect.DeepEqual(a.Certificates, b.Certificates)
}

func (r Redis) withDefaults() Redis {
	setDefault(&r.Timeout, 50*time.Millisecond)
	setDefault(&r.DialTimeout, time.Second)
	setDefault(&r.EmbeddedBytes, 128<<20)
	return r
}

// ParseRedis understands embedded, redis://[user:password@]host[:port][/db],
// rediss:// likewise with TLS, and unix://[user:password@]/path[?db=n]. The query
// cluster=true says that the address is the entry to a cluster. Errors never
// show the text, as it may hold a password.
func ParseRedis(text string) (Redis, error) {
	if text == "embedded" {
		return Redis{}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return Redis{}, errors.New("the Redis address is no URL")
	}
	password, _ := u.User.Password()
	r := Redis{Username: u.User.Username(), Password: password}
	if err := r.query(u.Query()); err != nil {
		return Redis{}, err
	}
	switch u.Scheme {
	case "unix":
		return r, r.socket(u)
	case "redis", "rediss":
		return r, r.server(u)
	}
	return Redis{}, fmt.Errorf("the Redis address begins with %q and not with redis, rediss or unix", u.Scheme)
}

func (r *Redis) query(query url.Values) (err error) {
	for name, values := range query {
		switch name {
		case "db":
			r.DB, err = databaseNumber(values[0])
		case "cluster":
			r.Cluster, err = strconv.ParseBool(values[0])
		default:
			err = errors.New("only db and cluster")
		}
		if err != nil {
			return fmt.Errorf("the query %q of the Redis address: %w", name, err)
		}
	}
	return nil
}

func (r *Redis) socket(u *url.URL) error {
	if u.Path == "" || u.Host != "" {
		return errors.New("the Redis address names no socket: write unix:///path")
	}
	r.Addrs = []string{u.Path}
	return nil
}

func (r *Redis) server(u *url.URL) (err error) {
	if u.Hostname() == "" {
		return errors.New("the Redis address has no host")
	}
	port := u.Port()
	setDefault(&port, "6379")
	r.Addrs = []string{net.JoinHostPort(u.Hostname(), port)}
	if u.Scheme == "rediss" {
		r.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if r.DB, err = databaseNumber(db); err != nil {
			return fmt.Errorf("the path of the Redis address: %w", err)
		}
	}
	return nil
}

func databaseNumber(text string) (int, error) {
	db, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, errors.New("is no database number")
	}
	return int(db), nil
}

// dial makes a connection whose answers have bounds. The library's own way to an
// encrypted one does not end with the context, and whoever closes the cache would wait
// for it.
func (r Redis) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: r.DialTimeout}
	connect := plain.DialContext
	if r.TLS != nil {
		connect = (&tls.Dialer{NetDialer: plain, Config: r.TLS}).DialContext
	}
	conn, err := connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return bounded(conn), nil
}

// client makes the client. Its own retries are off, because whoever waits for
// Redis is better served by the tracker; its own log lines too, because they
// would go to standard error past the log of the program.
func (r Redis) client(dial func(context.Context, string, string) (net.Conn, error)) redis.UniversalClient {
	logging.Disable()
	if dial == nil {
		dial = r.dial
	}
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: r.Addrs, MasterName: r.MasterName, IsClusterMode: r.Cluster,
		Username: r.Username, Password: r.Password, DB: r.DB, TLSConfig: r.TLS,
		SentinelUsername: r.SentinelUsername, SentinelPassword: r.SentinelPassword,
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
