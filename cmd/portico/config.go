package main

import (
	"net/netip"
	"time"
)

// Config is everything that an operator can set. Default gives the values that
// hold where nobody says otherwise, Load joins them with the file, the
// environment and the flags.
//
// The struct is the only description of the keys: the walker (config_walk.go),
// the environment, the dump and the suggestions are all derived from it. A new
// section is a new field here, its defaults in Default, a paragraph in
// config.example.yaml and, where values depend on each other, a check in
// config_validate.go. The tag `key` names the key; `oneof`, `min` and `max`
// bound its value.
type Config struct {
	// Listen is the address that clients are pointed at.
	Listen string `key:"listen"`
	// TLS protects that address. HTTP/2 is not offered on it.
	TLS ServerTLSConfig `key:"tls"`
	// Admin is the second listener: health, metrics and pages.
	Admin AdminConfig `key:"admin"`
	// Trackers are the servers that Portico can stand in front of, by a name
	// of the operator's choice.
	Trackers map[string]TrackerConfig `key:"trackers"`
	// Primary is the name of the tracker that answers. It may be left out
	// where there is only one.
	Primary string `key:"primary"`
	// Candidate is the name of the tracker that Primary is compared with, and that
	// callers are moved to. Empty means that there is one tracker only.
	Candidate string `key:"candidate"`
	// Callers gives names to keys, for rules to speak of.
	Callers map[string]CallerConfig `key:"callers"`
	// Switchover says which of the two trackers answers what.
	Switchover SwitchoverConfig `key:"switchover"`
	// Canary is the comparison of their answers.
	Canary CanaryConfig `key:"canary"`
	// Passthrough says which paths outside the interface stream through to
	// the primary tracker.
	Passthrough Prefixes `key:"passthrough"`
	// Responses chooses between the tracker's own forms (booleans as 0 and 1)
	// and those that the interface names.
	Responses string `key:"responses" oneof:"tracker|interface"`
	// API is what replies say about the interface itself.
	API APIConfig `key:"api"`
	// TrustedProxies are the networks whose X-Forwarded-* headers are believed.
	TrustedProxies []netip.Prefix `key:"trusted_proxies"`
	// Cache is the cache of flag type reads.
	Cache CacheConfig `key:"cache"`
	// State says where that which must survive a restart is kept:
	// "sqlite:FILE" or a postgres URL.
	State string `key:"state"`
	// Limits bound what one client, or all of them together, can ask for.
	Limits LimitsConfig `key:"limits"`
	// Timeouts bound how long anybody waits for anybody.
	Timeouts TimeoutsConfig `key:"timeouts"`
	// Blobs is where attachment content rests while it passes.
	Blobs BlobsConfig `key:"blobs"`
	// Log is about the program's own log on standard error.
	Log LogConfig `key:"log"`
	// Traces are records of single requests for a collector of OpenTelemetry.
	Traces TracesConfig `key:"traces"`

	// origins remembers where each value that is not a default came from, by
	// its path, for messages and for the dump.
	origins map[string]origin
}

// AdminConfig is the listener for operators.
type AdminConfig struct {
	// Listen is its address. Off loopback it needs a token or client
	// certificates.
	Listen string `key:"listen"`
	// TLS protects that address.
	TLS AdminTLSConfig `key:"tls"`
	// TokenFile holds the token that is asked for everywhere but by the health
	// checks.
	TokenFile string `key:"token_file"`
	// TokenEnv names the environment variable that holds it instead.
	TokenEnv string `key:"token_env"`
}

// ServerTLSConfig is the server's side of a TLS connection.
type ServerTLSConfig struct {
	// CertFile is the server's certificate with what leads to its root, PEM.
	// Empty means that the listener speaks plain HTTP.
	CertFile string `key:"cert_file"`
	// KeyFile is the private key of CertFile.
	KeyFile string `key:"key_file"`
}

// AdminTLSConfig is the same for operators, who may show certificates too.
type AdminTLSConfig struct {
	// CertFile is the server's certificate with what leads to its root, PEM.
	CertFile string `key:"cert_file"`
	// KeyFile is the private key of CertFile.
	KeyFile string `key:"key_file"`
	// ClientCAFile holds the PEM certificates that vouch for operators. Whoever
	// shows a certificate of theirs needs no token.
	ClientCAFile string `key:"client_ca_file"`
}

// TrackerConfig is one tracker.
type TrackerConfig struct {
	// URL is the tracker's base: the address of its front page, without /rest.
	URL string `key:"url"`
	// Dialect is what kind of server it is; auto asks it once.
	Dialect string `key:"dialect" oneof:"auto|bugzilla-5|bmo"`
	// Timeout is the longest wait for an answer to begin once the request has
	// been sent.
	Timeout time.Duration `key:"timeout" min:"10ms" max:"24h"`
	// CAFile holds the PEM certificates that its server certificate is checked
	// against, in place of the system's.
	CAFile string `key:"ca_file"`
	// CertFile and KeyFile are the client certificate that is shown to it, PEM.
	CertFile string `key:"cert_file"`
	// KeyFile is the private key of CertFile.
	KeyFile string `key:"key_file"`
}

// APIConfig is what replies say about the interface.
type APIConfig struct {
	// Documentation is the address in the `documentation` member of errors.
	Documentation string `key:"documentation"`
}

// CacheConfig is the cache of flag type reads (DESIGN.md, section 6).
type CacheConfig struct {
	// Redis is the shared level: "embedded", a URL, or a RedisConfig in full.
	Redis RedisConfig `key:"redis"`
	// Scope says who may share an answer: callers with the same credential,
	// with the same groups, or nobody, which turns the cache off.
	Scope string `key:"scope" oneof:"credential|group|off"`
	// LocalTTL is how long this process may answer without asking Redis; 0
	// turns that level off.
	LocalTTL time.Duration `key:"local_ttl" min:"0s"`
	// TTL is how long an answer counts as fresh. A credential that was revoked
	// is noticed when its answer is fetched again.
	TTL time.Duration `key:"ttl" min:"1s" max:"87600h"`
	// StaleWhileRevalidate is how long after TTL an answer may still be given
	// while a new one is fetched.
	StaleWhileRevalidate time.Duration `key:"stale_while_revalidate" min:"0s" max:"87600h"`
	// StaleIfError is how long after TTL an answer may still be given while
	// the tracker is sick.
	StaleIfError time.Duration `key:"stale_if_error" min:"0s" max:"87600h"`
	// SecretFile holds the key under which credentials are hashed into cache
	// keys; replicas that share a Redis share it. Without one a key is made at
	// start and shared through Redis.
	SecretFile string `key:"secret_file"`
	// SecretEnv names the environment variable that holds it instead.
	SecretEnv string `key:"secret_env"`
}

// RedisConfig is how Redis is reached. A plain text stands for URL.
type RedisConfig struct {
	// URL is "embedded", redis://, rediss:// or unix://.
	URL string `key:"url"`
	// Addrs are host:port pairs: of Sentinels where MasterName is set, of
	// cluster nodes where there are several, of one server otherwise.
	Addrs []string `key:"addrs"`
	// MasterName is the name that the Sentinels know the primary by.
	MasterName string `key:"master_name"`
	// Username is the ACL user.
	Username string `key:"username"`
	// PasswordFile holds the password.
	PasswordFile string `key:"password_file"`
	// PasswordEnv names the environment variable that holds it instead.
	PasswordEnv string `key:"password_env"`
	// TLS protects the connection.
	TLS TLSConfig `key:"tls"`
}

// TLSConfig is the client's side of a TLS connection.
type TLSConfig struct {
	// Enabled turns TLS on; a rediss:// URL does so by itself.
	Enabled bool `key:"enabled"`
	// CAFile holds the PEM certificates to trust in place of the system's.
	CAFile string `key:"ca_file"`
	// CertFile is the client certificate, PEM.
	CertFile string `key:"cert_file"`
	// KeyFile is the private key of CertFile.
	KeyFile string `key:"key_file"`
	// ServerName is the name to expect in the server's certificate, where it
	// differs from the address.
	ServerName string `key:"server_name"`
}

// LimitsConfig bounds what can be asked for (DESIGN.md, section 7).
type LimitsConfig struct {
	// Header is the largest request head.
	Header Size `key:"header" min:"4KiB" max:"16MiB"`
	// Body is the largest request body. An attachment travels as base64, a
	// third larger than itself.
	Body Size `key:"body" min:"1KiB" max:"1024GiB"`
	// BodyMemory is what the bodies of all requests together may take up in
	// memory, attachment content not counted. One alone may take 16 MiB.
	BodyMemory Size `key:"body_memory" min:"16MiB"`
	// Depth is the deepest nesting of a JSON body.
	Depth int `key:"depth" min:"4" max:"10000"`
	// IDs is the largest number of ids or names in one request.
	IDs int `key:"ids" min:"1"`
	// Concurrency is how many calls one tracker gets at a time.
	Concurrency int `key:"concurrency" min:"1"`
	// Queue is how many calls may wait for their turn; the next is refused.
	Queue int `key:"queue" min:"0"`
	// QueueWait is how long a call may wait for its turn.
	QueueWait time.Duration `key:"queue_wait" min:"0s" max:"1h"`
	// Rate is how often one caller may ask.
	Rate RateConfig `key:"rate"`
}

// RateConfig bounds how often one caller may ask, each kind of caller apart.
type RateConfig struct {
	// Anonymous is for each address that asks without a credential.
	Anonymous CallRate `key:"anonymous"`
	// Keyed is for each credential.
	Keyed CallRate `key:"keyed"`
}

// CallRate is how often somebody may ask.
type CallRate struct {
	// PerSecond is how many calls a second are let through in the long run; 0
	// turns the limit off.
	PerSecond int `key:"per_second" min:"0"`
	// Burst is how many calls may come at once.
	Burst int `key:"burst" min:"1"`
}

// TimeoutsConfig bounds how long anybody waits.
type TimeoutsConfig struct {
	// Header is how long a client may take to send the head of a request.
	Header time.Duration `key:"header" min:"100ms"`
	// Read is the longest pause of a client while it sends a body. It bounds
	// the pause and not the whole, so that a slow but steady upload survives.
	Read time.Duration `key:"read" min:"100ms"`
	// Write is the longest pause of a client while it takes an answer.
	Write time.Duration `key:"write" min:"100ms"`
	// Idle is how long an unused connection is kept.
	Idle time.Duration `key:"idle" min:"100ms"`
	// Connect is how long reaching a tracker or Redis may take.
	Connect time.Duration `key:"connect" min:"10ms"`
	// Redis is how long one command of Redis may take. Beyond it the tracker is
	// asked, so it should be less than an answer of the tracker takes.
	Redis time.Duration `key:"redis" min:"1ms" max:"10s"`
	// ShutdownDelay is how long clients are still let in after the program was
	// told to stop and /readyz has begun to say so. How long it takes until
	// nobody is sent here any more is known to the load balancer alone, and
	// without one a pause only makes restarts longer, so the default is none.
	ShutdownDelay time.Duration `key:"shutdown_delay" min:"0s" max:"10m"`
	// Drain is how long requests may still run once nobody is let in any more.
	Drain time.Duration `key:"drain" min:"0s"`
}

// BlobsConfig is where attachment content rests (DESIGN.md, section 8).
type BlobsConfig struct {
	// Memory is the size up to which one attachment stays in memory; a larger
	// one goes to a temporary file.
	Memory Size `key:"memory" min:"0" max:"1GiB"`
	// Dir is the folder for those files; empty is the system's own.
	Dir string `key:"dir"`
}

// LogConfig is about the program's log.
type LogConfig struct {
	// Level is the least severe kind of line that is written.
	Level string `key:"level" oneof:"debug|info|warn|error"`
	// Format is for machines or for eyes.
	Format string `key:"format" oneof:"json|text"`
}

// Default returns the configuration of a Portico that was told nothing. Only
// the trackers are missing: nobody can guess those.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		Admin:       AdminConfig{Listen: "127.0.0.1:9080"},
		Trackers:    map[string]TrackerConfig{},
		Callers:     map[string]CallerConfig{},
		Switchover:  defaultSwitchover(),
		Canary:      defaultCanary(),
		Passthrough: Prefixes{"/"},
		Responses:   "tracker",
		// The address that a real 5.x tracker gives (wire-facts, section 1).
		API: APIConfig{Documentation: "https://bugzilla.readthedocs.org/en/5.0/api/"},
		Cache: CacheConfig{
			Redis:                RedisConfig{URL: redisEmbedded},
			Scope:                "credential",
			LocalTTL:             time.Second,
			TTL:                  time.Minute,
			StaleWhileRevalidate: 5 * time.Minute,
			StaleIfError:         24 * time.Hour,
		},
		State:  "sqlite:portico.db",
		Limits: defaultLimits(),
		Timeouts: TimeoutsConfig{
			Header:  10 * time.Second,
			Read:    30 * time.Second,
			Write:   30 * time.Second,
			Idle:    2 * time.Minute,
			Connect: 5 * time.Second,
			Redis:   50 * time.Millisecond,
			Drain:   30 * time.Second,
		},
		Blobs:  BlobsConfig{Memory: 256 * KiB},
		Log:    LogConfig{Level: "info", Format: "json"},
		Traces: TracesConfig{Sample: 1},
	}
}

// defaultLimits leaves room for an attachment of 50 MB, which is 67 MB as base64
// and more with its neighbours. A real tracker refuses deeper bodies than Depth
// (wire-facts, section 1).
func defaultLimits() LimitsConfig {
	return LimitsConfig{
		Header:      64 * KiB,
		Body:        128 * MiB,
		BodyMemory:  64 * MiB,
		Depth:       512,
		IDs:         1000,
		Concurrency: 64,
		Queue:       256,
		QueueWait:   2 * time.Second,
		Rate:        RateConfig{Anonymous: CallRate{Burst: 50}, Keyed: CallRate{Burst: 100}},
	}
}

// SetDefaults fills in what holds for every tracker that says nothing else.
// The walker calls it for each new entry of Config.Trackers.
func (t *TrackerConfig) SetDefaults() {
	t.Dialect = "auto"
	t.Timeout = time.Minute
}

// PrimaryTracker is the tracker that answers. Load has made sure that it
// exists.
func (c *Config) PrimaryTracker() TrackerConfig { return c.Trackers[c.Primary] }
