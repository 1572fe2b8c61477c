package config

import (
	"net/netip"
	"reflect"
	"time"

	"portico/cache"
	"portico/proxy"
)

// Config is everything that an operator can set. Default gives the values of keys that nothing sets, Load joins them with the
// file, the environment and the flags.
//
// The struct is the only description of the keys, together with the settings of other packages that it contains, such as canary.Settings and
// switchover.Rule: reading, the environment, printing, suggestions, KeepUntilRestart and checks of single values derive from its tags.
//   - `key` names a key, and `keys` puts the keys of a struct into the section around it, each behind the text of the tag: a Secret with
//     `keys:"token_"` has token_file and token_env.
//   - `default` is the value where nothing sets it, and `unset` the text of the zero value.
//   - `oneof`, `is` (see formats; size is a number of bytes), `min` and `max` bound the value; `min` of a Secret is its minimum length, and
//     `is:"bytes"` says that it need not be one line of text.
//   - `holds:"certificates"` marks a file that must hold PEM certificates.
//   - `comma:"no"` keeps the commas of a text that stands for a list.
//   - `change` says whether a reload takes a new value ("reload") or the next start does ("restart"); it holds for all keys of a
//     section, unless one of them says restart.
//
// A new key is a new field here and a paragraph in config.example.yaml, and a check in validate.go where values depend on
// each other.
type Config struct {
	// Listen is the address of the listener for clients.
	Listen string `key:"listen" default:"127.0.0.1:8080" is:"address" change:"restart"`
	// TLS protects that address; empty means plain HTTP. HTTP/2 is not offered on it.
	TLS KeyPair `key:"tls" change:"reload"`
	// Admin is the second listener: health, metrics and pages.
	Admin Admin `key:"admin" change:"reload"`
	// Trackers are the servers that Portico can stand in front of, by a name of the operator's choice.
	Trackers map[string]Tracker `key:"trackers" change:"reload"`
	// Primary is the name of the tracker that serves clients. It may be left out where there is only one.
	Primary string `key:"primary" change:"restart"`
	// Candidate is the name of the tracker that Primary is compared with, and that callers are moved to. Empty means that
	// there is one tracker only.
	Candidate string `key:"candidate" change:"restart"`
	// Callers gives names to keys, for use in rules.
	Callers map[string]Caller `key:"callers" change:"reload"`
	// Switchover says which of the two trackers serves which requests.
	Switchover Switchover `key:"switchover" change:"reload"`
	// Canary is the comparison of their responses.
	Canary Canary `key:"canary" change:"reload"`
	// Passthrough is the list of path prefixes outside the interface that stream through to the primary tracker.
	Passthrough Prefixes `key:"passthrough" default:"all" is:"path" change:"reload"`
	// Responses chooses between the tracker's own forms (booleans as 0 and 1) and those of the interface.
	Responses string `key:"responses" default:"tracker" oneof:"tracker|interface" change:"reload"`
	// API is what replies say about the interface itself.
	API API `key:"api" change:"reload"`
	// TrustedProxies are the networks whose X-Forwarded-* headers are believed.
	TrustedProxies []netip.Prefix `key:"trusted_proxies" change:"reload"`
	// Cache is the cache of flag type reads.
	Cache Cache `key:"cache" change:"reload"`
	// State is where durable state is kept: "sqlite:FILE" or a PostgreSQL URL.
	State string `key:"state" default:"sqlite:portico.db" is:"store" change:"restart"`
	// Limits bound what one client, or all of them together, can request.
	Limits Limits `key:"limits" change:"reload"`
	// Timeouts bound every wait.
	Timeouts Timeouts `key:"timeouts" change:"reload"`
	// Blobs is where attachment content is kept while it passes.
	Blobs Blobs `key:"blobs" change:"reload"`
	// Log is the program's own log on standard error.
	Log Log `key:"log" change:"reload"`
	// Traces are traces of requests for a collector of OpenTelemetry.
	Traces Traces `key:"traces" change:"reload"`

	// origins holds where each value that is not a default was set, by its path, for messages and for Print.
	origins map[string]origin
}

// Default returns the configuration in which nothing is set. Only the trackers are missing.
func Default() Config { return Defaults[Config]() }

// Admin is the listener for operators.
type Admin struct {
	// Listen is its address. Off loopback it needs a token or client certificates.
	Listen string `key:"listen" default:"127.0.0.1:9080" is:"address" change:"restart"`
	// TLS protects that address.
	TLS AdminTLS `key:"tls"`
	// Token is required of every request but those of health checks.
	Token Secret `keys:"token_" min:"16"`
}

// AdminTLS is the TLS of the listener for operators, who may show certificates.
type AdminTLS struct {
	KeyPair `keys:""`
	// ClientCAFile holds the PEM certificates that sign those of operators. An operator with such a certificate needs no token.
	ClientCAFile string `key:"client_ca_file" holds:"certificates"`
}

// Tracker is one tracker.
type Tracker struct {
	// URL is the tracker's base: the address of its front page, without /rest.
	URL string `key:"url" change:"restart"`
	// Dialect is what kind of server it is; auto finds out by its version.
	Dialect string `key:"dialect" default:"auto" oneof:"auto|bugzilla-5|bmo"`
	// HideKeys keeps credentials out of the URLs of reads, which the web servers of trackers log: reads of the operations go
	// by JSON-RPC, which has them in the body. It applies to the dialect bugzilla-5 only.
	HideKeys bool `key:"hide_keys"`
	// Host is the address that the tracker knows itself by, where it is not that of URL: a host, or a scheme and a host. Both
	// are sent with every request.
	Host string `key:"host" is:"host"`
	// MaxBody is the maximum size of a request body; 0 is that of the dialect.
	MaxBody int64 `key:"max_body" default:"0" is:"size" min:"0"`
	// Timeout is the maximum wait for a response to begin once the request has been sent.
	Timeout time.Duration `key:"timeout" default:"1m" min:"10ms" max:"24h"`
	// Credentials says what the tracker is shown in place of a caller's key: that key, the caller's own key at this tracker, or one of the
	// service, for callers with a name.
	Credentials string `key:"credentials" default:"forward" oneof:"forward|mapped|service"`
	// ServiceKey is the key of the service.
	ServiceKey Secret `keys:"service_key_"`
	// Logins says what becomes of logins, passwords, tokens and login cookies.
	Logins string `key:"logins" default:"forward" oneof:"forward|refuse"`
	// TLSFiles are the certificates that the tracker's is checked against, and the one that is shown to it.
	TLSFiles `keys:""`
}

// API is what replies say about the interface.
type API struct {
	// Documentation is the address in the `documentation` member of errors. The default is that of a real 5.x tracker
	// (tracker-behaviour.md section 1).
	Documentation string `key:"documentation" default:"https://bugzilla.readthedocs.org/en/5.0/api/" is:"link"`
}

// Cache is the cache of flag type reads.
type Cache struct {
	// Redis is the shared level: "embedded", a URL, or a Redis in full.
	Redis Redis `key:"redis" default:"embedded" change:"restart"`
	// Settings are those of each tracker's cache.
	cache.Settings `keys:""`
	// Secret is the key under which credentials are hashed into cache keys; replicas that share a Redis share it. Without one
	// a key is made at start and shared through Redis.
	Secret Secret `keys:"secret_" min:"16" is:"bytes"`
}

// Redis is how Redis is reached. A plain text stands for URL.
type Redis struct {
	// URL is "embedded", redis://, rediss:// or unix://.
	URL string `key:"url"`
	// Addrs are host:port pairs: of Sentinels where MasterName is set, of cluster nodes where there are several, of one
	// server otherwise.
	Addrs []string `key:"addrs" is:"server"`
	// MasterName is the name that the Sentinels know the primary by.
	MasterName string `key:"master_name"`
	// Username is the ACL user.
	Username string `key:"username"`
	// Password is that of the user.
	Password Secret `keys:"password_" is:"bytes"`
	// TLS protects the connection.
	TLS TLS `key:"tls"`
}

// embedded is the URL of the Redis server that runs inside the process.
const embedded = "embedded"

// Embedded reports whether Redis runs inside the process.
func (r *Redis) Embedded() bool { return r.URL == embedded }

// UnmarshalText takes a plain text for the URL. It replaces the other ways to name a server and keeps the login, except that
// the embedded server has none.
func (r *Redis) UnmarshalText(text []byte) error {
	if string(text) == embedded {
		*r = Redis{}
	}
	r.URL, r.Addrs, r.MasterName = string(text), nil, ""
	return nil
}

// word returns the URL where nothing else is set, or else "".
func (r Redis) word() string {
	if reflect.DeepEqual(r, Redis{URL: r.URL}) {
		return r.URL
	}
	return ""
}

// Limits bounds what can be requested.
type Limits struct {
	// Connections is the maximum number of client connections. It is lowered to a quarter of the descriptors that the process
	// may open.
	Connections int `key:"connections" default:"16384" min:"2" change:"restart"`
	// Header is the maximum size of a request head.
	Header int `key:"header" default:"64KiB" is:"size" min:"4KiB" max:"16MiB" change:"restart"`
	// Body is the maximum size of a request body. An attachment travels as base64, a third larger than itself: the default
	// takes one of 50 MB, which is 67 MB as base64, and more.
	Body int64 `key:"body" default:"128MiB" is:"size" min:"1KiB" max:"1024GiB"`
	// BodyMemory is the maximum memory of the bodies of all requests together. One alone may take 16 MiB.
	BodyMemory int64 `key:"body_memory" default:"64MiB" is:"size" min:"16MiB"`
	// Depth is the maximum nesting of a JSON body. A real tracker refuses more than the default (tracker-behaviour.md
	// section 1).
	Depth int `key:"depth" default:"512" min:"4" max:"10000"`
	// IDs is the maximum number of ids or names in one request.
	IDs int `key:"ids" default:"1000" min:"1"`
	// Concurrency is the maximum number of concurrent calls to one tracker, before MaxConcurrency is used.
	Concurrency int `key:"concurrency" default:"64" min:"1"`
	// MaxConcurrency is how far that number may grow while calls wait and the tracker serves more of them for it. 0 is 1024 where Concurrency
	// has its default, and Concurrency elsewhere.
	MaxConcurrency int `key:"max_concurrency" default:"0" min:"0"`
	// Queue is the maximum number of calls that wait for one tracker; the next is refused.
	Queue int `key:"queue" default:"4096" min:"0"`
	// QueueWait is the maximum wait of a call in the queue; nil is the timeout of the tracker.
	QueueWait *time.Duration `key:"queue_wait" default:"timeout" unset:"timeout" min:"0s" max:"1h"`
	// Rate bounds the calls of one caller.
	Rate Rate `key:"rate"`
}

// Rate bounds the calls of one caller, each kind of caller apart.
type Rate struct {
	// Anonymous is for each address without a credential.
	Anonymous struct {
		// PerSecond is the number of calls a second in the long run; 0 turns the limit off.
		PerSecond int `key:"per_second" default:"0" min:"0"`
		// Burst is the number of calls that may come at once.
		Burst int `key:"burst" default:"50" min:"1"`
	} `key:"anonymous"`
	// Keyed is for each credential, with the same keys.
	Keyed struct {
		PerSecond int `key:"per_second" default:"0" min:"0"`
		Burst     int `key:"burst" default:"100" min:"1"`
	} `key:"keyed"`
}

// Timeouts bounds waits.
type Timeouts struct {
	// Header is the maximum time of a client to send the head of a request.
	Header time.Duration `key:"header" default:"10s" min:"100ms" change:"restart"`
	// ClientPause is the maximum pause of a client while it sends a body, and while it takes a response.
	proxy.ClientPause `keys:""`
	// Idle is how long an unused connection is kept.
	Idle time.Duration `key:"idle" default:"2m" min:"100ms" change:"restart"`
	// Connect is the maximum time to reach a tracker or Redis.
	Connect time.Duration `key:"connect" default:"5s" min:"10ms"`
	// Redis is the maximum time of one command of Redis. Beyond it the request goes to the tracker, so it should be less than
	// a response of the tracker takes.
	Redis time.Duration `key:"redis" default:"50ms" min:"1ms" max:"10s"`
	// ShutdownDelay is how long clients are still accepted after the program was told to stop and /readyz has begun to say
	// so. The default is 0: without a load balancer, which alone knows how long it takes, a pause only makes restarts longer.
	ShutdownDelay time.Duration `key:"shutdown_delay" default:"0s" min:"0s" max:"10m"`
	// Drain is how long requests may still run once no client is accepted any more.
	Drain time.Duration `key:"drain" default:"30s" min:"0s"`
}

// Blobs is where attachment content is kept.
type Blobs struct {
	// Memory is the size of a request, its attachment as base64, below which that attachment stays in memory, as far as limits.body_memory
	// allows; that of a larger one goes to a temporary file. Of a response that is rewritten, at most 256 KiB stay in memory.
	Memory int64 `key:"memory" default:"1MiB" is:"size" min:"0" max:"1GiB"`
	// Dir is the directory of those files; empty is that of the system.
	Dir string `key:"dir"`
}

// Log is about the program's log.
type Log struct {
	// Level is the minimum severity of a line that is written.
	Level string `key:"level" default:"info" oneof:"debug|info|warn|error"`
	// Format is for machines or for people.
	Format string `key:"format" default:"json" oneof:"json|text" change:"restart"`
}

// Traces is about traces of requests in the form of OpenTelemetry.
type Traces struct {
	// Endpoint is the address of a collector that speaks OTLP over HTTP, without /v1/traces. Empty turns traces off.
	Endpoint string `key:"endpoint"`
	// Sample is the share of the traces begun here that are recorded. For a trace that a client began, the client decides.
	Sample float64 `key:"sample" default:"1" min:"0" max:"1"`
	// CAFile holds the PEM certificates that the collector's is checked against, in place of the system's.
	CAFile string `key:"ca_file" holds:"certificates"`
	// Headers holds headers to send to the collector, one "Name: value" a line.
	Headers Secret `keys:"headers_" is:"bytes"`
}
