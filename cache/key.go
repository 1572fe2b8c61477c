package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"portico/mapping"
)

// valueMark stands in the keys of answers and in no others.
const valueMark = "}:v:"

// key names one answer. Product and component count exactly as they were sent:
// which spellings are the same name is the tracker's business, and to guess
// wrong would show one product for another. A client that spells a name in two
// ways merely has two entries.
type key struct {
	scope     scope
	product   string
	component string
}

// cacheable tells whether the names may become part of a key.
func cacheable(request mapping.FlagTypesRequest) bool {
	return fits(request.Product) && fits(request.Component)
}

func fits(name string) bool {
	return len(name) <= longestName || len(name) <= 4*longestName && utf8.RuneCountInString(name) <= longestName
}

// keys makes the names of everything in Redis. All of one tracker have one hash
// tag, so that a cluster keeps them on one node and one command reads several.
type keys struct {
	tracker string
	prefix  string
}

// newKeys makes keys for a tracker. Who gives the name to another address never
// meets the answers of the former one. The number is the version of the format.
func newKeys(tracker, address string) keys {
	name := url.QueryEscape(tracker)
	if address != "" {
		name += ":" + digest(address)[:addressDigits]
	}
	return keys{tracker: name, prefix: "portico:1:{" + name + "}:"}
}

// addressDigits is how much of the digest of an address stands in keys: enough to
// tell the addresses apart that one name ever had.
const addressDigits = 12

func (k keys) generation() string { return k.prefix + "generation" }
func (k keys) writes() string     { return k.prefix + "writes" }
func (k keys) secret() string     { return k.prefix + "secret" }

// nothing is never there.
func (k keys) nothing() string { return k.prefix + "nothing" }

// doubt is there while a write may still be carried out whose outcome is unknown.
func (k keys) doubt() string { return k.prefix + "doubt" }

// channel is where changes are published. Keys belong to a database of the server,
// channels to the whole server, so the number of the database is part of the name.
func (k keys) channel(db int) string { return k.prefix + "changes:" + strconv.Itoa(db) }

// plain is what the name of an answer in Redis is the digest of. It is kept
// with the answer and compared on a hit.
func (k keys) plain(of key) string {
	in := appendPart(nil, of.scope.String())
	in = appendPart(in, k.tracker)
	in = appendPart(in, of.product)
	return string(appendPart(in, of.component))
}

func (k keys) value(plain string) string { return k.prefix + "v:" + digest(plain) }

// lease is per generation and marks: who asks under the present ones never waits
// for an answer to somebody who asked under older ones.
func (k keys) lease(plain string, s stamp) string {
	return k.prefix + "l:" + digest(plain+s.generation+s.writes)
}

// product is the key of what is purged together. It is wider than a tracker's own
// idea of a name, as purging too much does no harm.
func (k keys) product(name string) string { return k.prefix + "p:" + digest(fold(name)) }

// index is the key of the list of a product's answers.
func (k keys) index(name string) string { return k.prefix + "i:" + digest(fold(name)) }

func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
