package main

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written like 64MiB, 10MB or 512.
type Size int64

// The binary units that Size is written in.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// sizeUnits are the suffixes of a Size, those that end like another first.
var sizeUnits = []struct {
	suffix string
	bytes  Size
}{
	{"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"B", 1},
}

// UnmarshalText reads a size. Units are case-sensitive, since "mb" may as well
// mean bits.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), Size(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a size such as 64MiB, 10MB or 512", text)
	}
	if n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		return fmt.Errorf("%q is more bytes than can be counted", text)
	}
	*s = Size(n) * unit
	return nil
}

// MarshalText writes a size with the largest binary unit that divides it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the same text.
func (s Size) String() string {
	switch {
	case s == 0:
		return "0"
	case s%GiB == 0:
		return fmt.Sprintf("%dGiB", int64(s/GiB))
	case s%MiB == 0:
		return fmt.Sprintf("%dMiB", int64(s/MiB))
	case s%KiB == 0:
		return fmt.Sprintf("%dKiB", int64(s/KiB))
	}
	return strconv.FormatInt(int64(s), 10)
}

// Prefixes is a list of path prefixes: all is the prefix "/", none is empty.
type Prefixes []string

// UnmarshalText reads all, none, or prefixes with commas between them, the
// form that an environment variable can hold.
func (p *Prefixes) UnmarshalText(text []byte) error {
	switch string(text) {
	case "all":
		*p = Prefixes{"/"}
	case "none":
		*p = Prefixes{}
	default:
		list := splitList(string(text))
		if len(list) == 0 || !strings.HasPrefix(list[0], "/") {
			return fmt.Errorf("%q is neither all nor none nor a list of path prefixes", text)
		}
		*p = list
	}
	return nil
}

// MarshalText writes the short form where there is one.
func (p Prefixes) MarshalText() ([]byte, error) {
	switch {
	case len(p) == 0:
		return []byte("none"), nil
	case len(p) == 1 && p[0] == "/":
		return []byte("all"), nil
	}
	return []byte(strings.Join(p, ",")), nil
}

// redisEmbedded is the URL of the Redis server that runs inside the process.
const redisEmbedded = "embedded"

// UnmarshalText takes a plain text for the URL. It says where Redis is, so it
// replaces the other ways to say that; how to log in there stays as it was set,
// unless the server is the embedded one, which asks nobody.
func (r *RedisConfig) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("is empty: write embedded, a URL, or addrs")
	}
	if string(text) == redisEmbedded {
		*r = RedisConfig{}
	}
	r.URL, r.Addrs, r.MasterName = string(text), nil, ""
	return nil
}

// Embedded reports whether Redis runs inside the process.
func (r *RedisConfig) Embedded() bool { return r.URL == redisEmbedded }

// splitList takes a comma-separated text apart and drops blanks.
func splitList(text string) []string {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// Texts are one text or a list of them. A text stays whole, since names may have
// commas in them.
type Texts []string

// UnmarshalText takes a plain text for a list of one.
func (t *Texts) UnmarshalText(text []byte) error {
	*t = Texts{string(text)}
	return nil
}

// IDRange is a range of ids, both ends in it, written like 1-100, 7 or 500-.
type IDRange struct{ From, To int64 }

// UnmarshalText reads a range.
func (r *IDRange) UnmarshalText(text []byte) error {
	from, to, ranged := strings.Cut(string(text), "-")
	if !ranged {
		to = from
	}
	first, err := strconv.ParseInt(strings.TrimSpace(from), 10, 64)
	last := int64(math.MaxInt64)
	if to = strings.TrimSpace(to); err == nil && to != "" {
		last, err = strconv.ParseInt(to, 10, 64)
	}
	switch {
	case err != nil || first < 1:
		return fmt.Errorf("%q is not a range of ids such as 1-100, 7 or 500-", text)
	case last < first:
		return fmt.Errorf("%q ends before it begins", text)
	}
	*r = IDRange{first, last}
	return nil
}

// MarshalText writes a range.
func (r IDRange) MarshalText() ([]byte, error) {
	switch r.To {
	case r.From:
		return strconv.AppendInt(nil, r.From, 10), nil
	case math.MaxInt64:
		return fmt.Appendf(nil, "%d-", r.From), nil
	}
	return fmt.Appendf(nil, "%d-%d", r.From, r.To), nil
}

// Share is a percentage of the callers; empty is no condition. All of them is one, as
// it is on its way up or down, and hides no rule behind it.
type Share struct {
	Percent float64
	Given   bool
}

// everybody is the largest share.
const everybody = 100

// UnmarshalText reads a percentage.
func (s *Share) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*s = Share{}
		return nil
	}
	percent, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil || math.IsNaN(percent) || math.IsInf(percent, 0):
		return fmt.Errorf("%q is not a number", text)
	case percent < 0:
		return fmt.Errorf("%s is less than 0", text)
	case percent > everybody:
		return fmt.Errorf("%s is more than %d", text, everybody)
	}
	*s = Share{percent, true}
	return nil
}

// MarshalText writes a percentage.
func (s Share) MarshalText() ([]byte, error) {
	if !s.Given {
		return nil, nil
	}
	return strconv.AppendFloat(nil, s.Percent, 'g', -1, 64), nil
}

// Date is a day, or a moment, at which something ends; empty is never.
type Date struct{ time.Time }

// UnmarshalText reads 2026-12-31, which begins in UTC, or a time as in RFC 3339.
func (d *Date) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, string(text)); err == nil {
			*d = Date{at.UTC()}
			return nil
		}
	}
	return fmt.Errorf("%q is not a date such as 2026-12-31", text)
}

// MarshalText writes the short form where there is one.
func (d Date) MarshalText() ([]byte, error) {
	switch {
	case d.IsZero():
		return nil, nil
	case d.Equal(d.Truncate(24 * time.Hour)):
		return d.AppendFormat(nil, time.DateOnly), nil
	}
	return d.AppendFormat(nil, time.RFC3339Nano), nil
}

var (
	_ encoding.TextUnmarshaler = (*Size)(nil)
	_ encoding.TextUnmarshaler = (*Texts)(nil)
	_ encoding.TextUnmarshaler = (*IDRange)(nil)
	_ encoding.TextUnmarshaler = (*Date)(nil)
	_ encoding.TextUnmarshaler = (*Prefixes)(nil)
	_ encoding.TextUnmarshaler = (*RedisConfig)(nil)
)
