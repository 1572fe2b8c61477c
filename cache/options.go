package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portico/upstream"
)

// Scope says which callers may share an answer.
type Scope string

// Scopes. The zero value means ScopeCredential.
const (
	// ScopeCredential shares an answer between requests with the same credential.
	ScopeCredential Scope = "credential"
	// ScopeGroup shares it between callers who are in the same groups.
	ScopeGroup Scope = "group"
	// ScopeOff caches nothing.
	ScopeOff Scope = "off"
)

// Options configure a Cache. The zero value is usable: one process, an embedded
// Redis server, no local level.
type Options struct {
	// Tracker is the name that keys carry, so that trackers can share a Redis.
	Tracker string
	// Address is where that tracker is and how it is spoken to. Keys carry a digest
	// of it, so that answers stay with the tracker that gave them.
	Address string
	// Redis is where the shared level is.
	Redis Redis
	// Common is what the cache before this one went on with, and must fit; nil
	// means something of its own.
	Common *Common
	// Scope says who shares; see the constants.
	Scope Scope
	// Groups tells which groups a caller is in, asked with the caller's own
	// credential. ScopeGroup needs it; an error means that the caller shares
	// with nobody for now.
	Groups func(ctx context.Context, caller upstream.Caller) ([]string, error)
	// GroupsTTL is how long the groups of a caller are remembered; 0 means 1m.
	GroupsTTL time.Duration
	// Secret keys the HMAC that stands for a credential. Empty means one that is
	// made at random and shared through Redis. Whoever can read Redis can read
	// that one, too, and test guesses of weak passwords against the keys; against
	// that, set one.
	Secret []byte

	// TTL is how long an answer counts as fresh, less up to a tenth so that
	// answers do not expire together; 0 means 1m. A credential that was
	// revoked is noticed when the answer is refreshed, so keep it short.
	TTL time.Duration
	// LocalTTL is how long this process answers without asking Redis; 0 never.
	LocalTTL time.Duration
	// StaleWhileRevalidate is how long after TTL an answer is still given while a
	// new one is fetched.
	StaleWhileRevalidate time.Duration
	// StaleIfError is how long after TTL an answer is still given while the
	// tracker is sick.
	StaleIfError time.Duration
	// NegativeTTL is how long "no such component" is remembered; 0 means 5s,
	// negative means not at all.
	NegativeTTL time.Duration
	// LocalBytes bounds the local level; 0 means 64 MiB.
	LocalBytes uint64

	// FillTimeout bounds one call of the tracker for the cache; 0 means 30s.
	FillTimeout time.Duration
	// Doubt is how long after a write whose outcome is unknown the tracker may still
	// carry it out; 0 means four times FillTimeout, at least 1m.
	Doubt time.Duration
	// MaxFills bounds how many such calls are under way; 0 means 256.
	MaxFills int
	// Lease is how long other processes leave a fill to one; 0 means 1s.
	Lease time.Duration
	// RevalidateEvery is how often one scope may force a fresh answer; 0 means 1s.
	RevalidateEvery time.Duration

	// Logger gets changes of state, never a credential; nil means none.
	Logger *slog.Logger
	// Observer is told what happens, for metrics.
	Observer Observer
}

// String shows neither the secret nor a password.
func (o Options) String() string {
	return fmt.Sprintf("cache of %s in redis %s, scope %s", o.Tracker, o.Redis, o.Scope)
}

// GoString shows what String does.
func (o Options) GoString() string { return o.String() }

// Observer is told what the cache does. Every text it gets is from a small fixed
// set. Nil functions are not called. They run on the path of requests: be quick.
type Observer struct {
	// Read is told of each read: local, redis, stale, negative, miss, request,
	// bypass or error.
	Read func(outcome string)
	// Fill is told of each call of the tracker.
	Fill func(took time.Duration, err error)
	// Redis is told of each call of Redis.
	Redis func(operation string, took time.Duration, err error)
	// RedisState is told when Redis goes away or comes back.
	RedisState func(available bool)
	// Change is told of each flag type change and whether Redis heard of it.
	Change func(delivered bool)
}

// longestName bounds what becomes part of a key; longer names are asked of the
// tracker each time. No real product or component has more than 255 characters.
const longestName = 255

func (o Options) withDefaults() Options {
	setDefault(&o.Scope, ScopeCredential)
	setDefault(&o.GroupsTTL, time.Minute)
	setDefault(&o.TTL, time.Minute)
	setDefault(&o.NegativeTTL, 5*time.Second)
	setDefault(&o.LocalBytes, 64<<20)
	setDefault(&o.FillTimeout, 30*time.Second)
	setDefault(&o.Doubt, max(time.Minute, 4*o.FillTimeout))
	setDefault(&o.MaxFills, 256)
	setDefault(&o.Lease, time.Second)
	setDefault(&o.RevalidateEvery, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Redis = o.Redis.withDefaults()
	o.Observer = o.Observer.withDefaults()
	return o
}

func (o Observer) withDefaults() Observer {
	if o.Read == nil {
		o.Read = func(string) {}
	}
	if o.Fill == nil {
		o.Fill = func(time.Duration, error) {}
	}
	if o.Redis == nil {
		o.Redis = func(string, time.Duration, error) {}
	}
	if o.RedisState == nil {
		o.RedisState = func(bool) {}
	}
	if o.Change == nil {
		o.Change = func(bool) {}
	}
	return o
}

func (o Options) validate() error {
	switch o.Scope {
	case ScopeCredential, ScopeOff:
	case ScopeGroup:
		if o.Groups == nil {
			return errors.New("cache: scope group needs a way to learn groups")
		}
	default:
		return fmt.Errorf("cache: unknown scope %q", string(o.Scope))
	}
	if o.TTL < 0 || o.LocalTTL < 0 || o.StaleWhileRevalidate < 0 || o.StaleIfError < 0 || o.MaxFills < 0 {
		return errors.New("cache: times and limits cannot be negative")
	}
	return nil
}

// keep is how long Redis keeps an answer whose time to live is soft.
func (o *Options) keep(soft time.Duration) time.Duration {
	return soft + max(o.StaleWhileRevalidate, o.StaleIfError)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
