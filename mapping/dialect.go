package mapping

import "strings"

// Dialect is what differs between the interface and one kind of tracker
// (wire-facts.md section 9).
type Dialect struct {
	// Name is bugzilla-5 or bmo.
	Name string
	// Root is the path of the tracker's REST interface; empty is /rest. Where the
	// web server has no rewrite rule for that, it is /rest.cgi (wire-facts.md
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
	// EncodedSlash says that %2F in a path reaches the tracker as a slash.
	EncodedSlash bool
	// JSONRPC says that /jsonrpc.cgi reaches names that no path can carry.
	JSONRPC bool
}

// Bugzilla5 is the dialect of Bugzilla 5.0 and 5.2, token-identical behind the
// seven operations (wire-facts.md, preface).
func Bugzilla5() Dialect {
	return Dialect{
		Name: "bugzilla-5", FlagTypeResource: "flag_type", FlagTypeWrites: true,
		DropsOddMembers: true, JSONRPC: true,
	}
}

// BMO is the dialect of bugzilla.mozilla.org and of Harmony.
func BMO() Dialect {
	return Dialect{
		Name: "bmo", FlagTypeResource: "flag_types", HeaderCredentials: true,
		DropsOddMembers: true, EncodedSlash: true,
	}
}

// DialectNamed finds a dialect by its name in the configuration.
func DialectNamed(name string) (dialect Dialect, ok bool) {
	for _, dialect := range []Dialect{Bugzilla5(), BMO()} {
		if dialect.Name == name {
			return dialect, true
		}
	}
	return Dialect{}, false
}

// DialectOfVersion tells the dialect from the answer of GET /rest/version:
// stock releases are 5.0 and 5.2 with a suffix; Harmony counts from 5.1 or 5.3
// up in odd numbers, 5.9 among them, and BMO sends a date such as 20240101.1.
func DialectOfVersion(version string) Dialect {
	major, rest, _ := strings.Cut(version, ".")
	if len(major) == 8 && isDigits(major) {
		return BMO()
	}
	minor, _, _ := strings.Cut(rest, ".")
	minor = strings.TrimRight(minor, "+")
	if n, ok := parseID(minor); ok && major == "5" && n%2 == 1 {
		return BMO()
	}
	if n, ok := parseID(major); ok && n >= 6 {
		return BMO()
	}
	return Bugzilla5()
}
