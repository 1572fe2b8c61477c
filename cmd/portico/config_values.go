package main

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
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

var (
	_ encoding.TextUnmarshaler = (*Size)(nil)
	_ encoding.TextUnmarshaler = (*Prefixes)(nil)
	_ encoding.TextUnmarshaler = (*RedisConfig)(nil)
)
