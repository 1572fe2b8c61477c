package tracker

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Quirk is a way in which a server differs from the recorded one.
type Quirk string

// Quirks that real installations have (tracker-behaviour.md section 1, 5 and 9).
const (
	// QuirkSlashNoDecode leaves %2F in a path as three characters.
	QuirkSlashNoDecode Quirk = "slash-nodecode"
	// QuirkSlashOn decodes %2F in a path to a separator.
	QuirkSlashOn Quirk = "slash-on"
	// QuirkModCGI answers JSON that is no object with an HTML 500.
	QuirkModCGI Quirk = "mod_cgi"
	// QuirkUTF8Path finds products with non-ASCII names by path, as the 5.0 line with the mysql driver does.
	QuirkUTF8Path Quirk = "utf8-path"
	// QuirkKeepaliveDrop closes the connection after each answer without having said so.
	QuirkKeepaliveDrop Quirk = "keepalive-drop"
	// QuirkEmailFilter cuts addresses at the @ for anonymous callers.
	QuirkEmailFilter Quirk = "email-filter"
	// QuirkRequireLogin refuses anonymous callers.
	QuirkRequireLogin Quirk = "requirelogin"
	// QuirkReverseProxy makes rate limits count the last address of X-Forwarded-For.
	QuirkReverseProxy Quirk = "reverse-proxy"
)

// Quirks planted on reads, for comparisons to find.
const (
	// QuirkMissingField leaves one field out of flag types and attachments.
	QuirkMissingField Quirk = "missing-field"
	// QuirkChangedType turns one integer of flag types and attachments into a string.
	QuirkChangedType Quirk = "changed-type"
	// QuirkReordered turns lists round.
	QuirkReordered Quirk = "reordered"
	// QuirkWrongValues changes one text of flag types and attachments.
	QuirkWrongValues Quirk = "wrong-values"
	// QuirkWrongGroupValues takes "-" from the values of flag types, for members of one group only: staff in the demo,
	// secretgroup in the fixture.
	QuirkWrongGroupValues Quirk = "wrong-group-values"
	// QuirkSlow makes every read take 200 ms longer.
	QuirkSlow Quirk = "slow"
	// QuirkLag lets reads see writes 300 ms late. A follower sees those of the one that it follows late, its own at once.
	QuirkLag Quirk = "lag"
	// QuirkVolatile adds a field that is different on each read.
	QuirkVolatile Quirk = "volatile"
)

const (
	slowTime = 200 * time.Millisecond
	lagTime  = 300 * time.Millisecond
)

// Quirks lists all quirks.
func Quirks() []Quirk {
	return []Quirk{QuirkSlashNoDecode, QuirkSlashOn, QuirkModCGI, QuirkUTF8Path, QuirkKeepaliveDrop, QuirkEmailFilter, QuirkRequireLogin, QuirkReverseProxy,
		QuirkMissingField, QuirkChangedType, QuirkReordered, QuirkWrongValues, QuirkWrongGroupValues, QuirkSlow, QuirkLag, QuirkVolatile}
}

// ParseQuirk reads the name of a quirk.
func ParseQuirk(name string) (Quirk, error) {
	if q := Quirk(name); slices.Contains(Quirks(), q) {
		return q, nil
	}
	return "", fmt.Errorf("unknown quirk %q: known are %s", name, strings.Join(names(Quirks()), ", "))
}

// ParseSeed reads the name of a seed.
func ParseSeed(name string) (Seed, error) {
	if s := Seed(name); slices.Contains([]Seed{SeedDemo, SeedFixture, SeedCopy}, s) {
		return s, nil
	}
	return "", fmt.Errorf("unknown seed %q: known are demo, copy and fixture", name)
}

func names[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func (s *Server) has(q Quirk) bool { return slices.Contains(*s.quirks.Load(), q) }

// slashes gives the quirk that says what the web server does with %2F in a path; without one it refuses the path.
func (s *Server) slashes() Quirk {
	for _, q := range []Quirk{QuirkSlashOn, QuirkSlashNoDecode} {
		if s.has(q) {
			return q
		}
	}
	return ""
}

// distort plants the differences that quirks ask for into the answer of a read.
func (s *Server) distort(op *operation, result any) any {
	if op.write || op.open {
		return result
	}
	if s.has(QuirkSlow) {
		time.Sleep(slowTime)
	}
	s.walk(result)
	return result
}

// walk goes through an answer and distorts each flag type and each attachment in it.
func (s *Server) walk(v any) {
	switch v := v.(type) {
	case []any:
		if s.has(QuirkReordered) {
			slices.Reverse(v)
		}
		for _, e := range v {
			s.walk(e)
		}
	case object:
		for _, e := range v {
			s.walk(e)
		}
		_, isType := v["is_requesteeble"]
		_, isAttachment := v["file_name"]
		switch {
		case isType:
			s.spoil(v, "is_multiplicable", "id", "description")
		case isAttachment:
			s.spoil(v, "creator", "size", "summary")
		}
	}
}

func (s *Server) spoil(o object, missing, number, words string) {
	if s.has(QuirkMissingField) {
		delete(o, missing)
	}
	if n, ok := o[number].(int); ok && s.has(QuirkChangedType) {
		o[number] = text(int64(n))
	}
	if w, ok := o[words].(string); ok && s.has(QuirkWrongValues) {
		o[words] = w + " (altered)"
	}
	if s.has(QuirkVolatile) {
		o["served_as"] = rand.Text()
	}
}
