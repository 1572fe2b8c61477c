package cache

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"portico/upstream"
)

// Scope says which callers share entries.
type Scope string

// Scopes. The zero value means ScopeCredential.
const (
	// ScopeCredential shares entries between requests with the same credential.
	ScopeCredential Scope = "credential"
	// ScopeGroup shares them between callers who are in the same groups.
	ScopeGroup Scope = "group"
	// ScopeOff means that there is no Cache.
	ScopeOff Scope = "off"
)

// Settings are those that the configuration has: package config reads them by their tags.
type Settings struct {
	// Scope says which callers share entries.
	Scope Scope `key:"scope" default:"credential" oneof:"credential|group|off"`
	// LocalTTL is how long this process uses an entry without asking Redis; 0 means that it always asks.
	LocalTTL time.Duration `key:"local_ttl" default:"1s" min:"0s"`
	// TTL is how long an entry is fresh, less up to a tenth so that entries do not expire together; 0 means 1m. A credential
	// that was revoked is noticed when the entry is replaced.
	TTL time.Duration `key:"ttl" default:"1m" min:"1s" max:"87600h"`
	// StaleWhileRevalidate is how long after TTL an entry is used while a new one is fetched.
	StaleWhileRevalidate time.Duration `key:"stale_while_revalidate" default:"5m" min:"0s" max:"87600h"`
	// StaleIfError is how long after TTL an entry is used while the tracker fails.
	StaleIfError time.Duration `key:"stale_if_error" default:"24h" min:"0s" max:"87600h"`
}

// Options configure a Cache. The zero value is usable: one process, an embedded Redis server, no local level.
type Options struct {
	Settings
	// Tracker is the name that keys carry, so that trackers can share a Redis.
	Tracker string
	// Address is where that tracker is and how it is spoken to. Keys carry a digest of it, so that a name which moves to
	// another tracker does not find the entries of the former one.
	Address string
	// Redis is where the shared level is.
	Redis Redis
	// Shared are the shared resources of the cache before this one, which must fit; nil opens new ones.
	Shared *Shared
	// Groups asks the tracker for the groups of a caller, with the caller's own credential. ScopeGroup needs it. After an
	// error the caller shares entries with no other one for a while.
	Groups func(ctx context.Context, caller upstream.Caller) ([]string, error)
	// Keys returns the caller as the tracker sees it, or an error for one that it never sees; nil changes nothing.
	Keys func(upstream.Caller) (upstream.Caller, error)
	// Secret keys the HMAC that stands for a credential. Empty means a random one that processes share through Redis:
	// whoever can read Redis can read it, and can test guesses of weak passwords against the keys.
	Secret []byte

	// FillTimeout bounds one call of the tracker for the cache; 0 means 30s.
	FillTimeout time.Duration
	// Lease is how long other processes leave a call of the tracker to one of them; 0 means 1s.
	Lease time.Duration

	// Logger gets changes of state, never a credential; nil means none.
	Logger *slog.Logger
	// Observer gets what happens, for metrics.
	Observer Observer
}

// String shows neither the secret nor a password.
func (o Options) String() string {
	return fmt.Sprintf("cache of %s in redis %s, scope %s", o.Tracker, o.Redis, o.Scope)
}

// GoString shows what String does.
func (o Options) GoString() string { return o.String() }

// Observer gets what the cache does. Every text is from a small fixed set. Either all functions are set or none is. They run
// in requests and must be quick.
type Observer struct {
	// Read gets the outcome of each read: local, redis, stale, miss, request, bypass or error.
	Read func(outcome string)
	// Fill gets each call of the tracker.
	Fill func(took time.Duration, err error)
	// Redis gets each call of Redis.
	Redis func(operation string, took time.Duration, err error)
	// RedisState is called when Redis becomes unreachable or reachable.
	RedisState func(available bool)
	// Change gets each flag type change, and whether Redis was told of it.
	Change func(delivered bool)
}

func (o Options) withDefaults() Options {
	setDefault(&o.Scope, ScopeCredential)
	setDefault(&o.TTL, time.Minute)
	setDefault(&o.FillTimeout, 30*time.Second)
	setDefault(&o.Lease, time.Second)
	setDefault(&o.Redis.Timeout, 50*time.Millisecond)
	setDefault(&o.Redis.DialTimeout, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer.Read == nil {
		o.Observer = Observer{
			Read: func(string) {}, Fill: func(time.Duration, error) {}, Redis: func(string, time.Duration, error) {},
			RedisState: func(bool) {}, Change: func(bool) {},
		}
	}
	return o
}

// entryLife is how long Redis keeps an entry.
func (o *Options) entryLife() time.Duration {
	return o.TTL + max(o.StaleWhileRevalidate, o.StaleIfError)
}

// productLife is how long Redis keeps what belongs to the entries of a product: longer than any of them.
func (o *Options) productLife() time.Duration { return 2*o.entryLife() + time.Hour }

// unknownTime is how long after a write of unknown outcome the tracker may still carry it out.
func (o *Options) unknownTime() time.Duration { return max(time.Minute, 4*o.FillTimeout) }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
