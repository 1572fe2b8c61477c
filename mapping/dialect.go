package mapping

import (
	"strings"
	"time"
)

// Dialect is what differs between the interface and one kind of tracker
// (tracker-behaviour.md section 9).
type Dialect struct {
	// Name is its name in the configuration.
	Name string
	// Root is the path of the tracker's REST interface; empty is /rest. Where the
	// web server has no rewrite rule for that, it is /rest.cgi (tracker-behaviour.md
	// section 1, Paths and methods).
	Root string
	// FlagTypeResource is the first path segment of flag type reads.
	FlagTypeResource string
	// FlagTypeWrites says that flag types can be created and updated.
	FlagTypeWrites bool
	// HeaderCredentials says that the tracker reads X-BUGZILLA-API-KEY and its
	// kin, so that no credential needs to travel in a URL.
	HeaderCredentials bool
	// DropsOddMembers says that JSON members with odd names vanish.
	DropsOddMembers bool
	// NotInPath are the characters that the tracker, or the web server before it,
	// reads wrong in a path even when they are escaped.
	NotInPath string
	// ASCIIOnly says that the tracker reads other characters in an address wrong.
	ASCIIOnly bool
	// MaxBody is the size in bytes up to which the tracker takes a request body; 0
	// means that it has no such limit.
	MaxBody int64
	// Backoff is how long a client should not ask after a response with status 429
	// that does not say so; 0 means that it may ask at once.
	Backoff time.Duration
	// JSONRPC says that /jsonrpc.cgi reaches names that no path can carry.
	JSONRPC bool
}

// Bugzilla5 is the dialect of Bugzilla 5.0 and 5.2, token-identical behind the
// seven operations (tracker-behaviour.md).
func Bugzilla5() Dialect {
	return Dialect{
		Name: "bugzilla-5", FlagTypeResource: "flag_type", FlagTypeWrites: true,
		DropsOddMembers: true, JSONRPC: true, NotInPath: `/%\?#`, ASCIIOnly: true,
	}
}

// BMO is the dialect of bugzilla.mozilla.org and of Harmony. Where the two differ,
// it is what both understand: their versions do not tell them apart for certain
// (tracker-behaviour.md section 14). Their web server takes 16 MiB, and counts the head of a request too. BMO blocks a client for
// an hour, again at each try.
func BMO() Dialect {
	return Dialect{
		Name: "bmo", FlagTypeResource: "flag_types", HeaderCredentials: true,
		DropsOddMembers: true, NotInPath: "/", MaxBody: 16<<20 - 16<<10, Backoff: time.Hour + time.Minute,
	}
}

// Dialects lists all dialects.
func Dialects() []Dialect { return []Dialect{Bugzilla5(), BMO()} }

// DialectNamed finds a dialect by its name in the configuration.
func DialectNamed(name string) (dialect Dialect, ok bool) {
	for _, each := range Dialects() {
		if each.Name == name {
			return each, true
		}
	}
	return
}

// DialectOfVersion returns the dialect for the version in the response of GET /rest/version:
// stock releases are 5.0 and 5.2 with a suffix; Harmony counts from 5.1 or 5.3
// up in odd numbers, 5.9 among them, and BMO sends a date such as 20240101.1.
func DialectOfVersion(version string) Dialect {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	number, _ := parseID(major)
	release, _ := parseID(strings.TrimRight(minor, "+"))
	if number >= 6 || number == 5 && release%2 == 1 {
		return BMO()
	}
	return Bugzilla5()
}
