package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"

	"portico/upstream"
)

// key names one entry. Product and component are as they were sent: which spellings are the same name is the tracker's
// decision, and a wrong guess would show one product for another.
type key struct {
	scope     scope
	product   string
	component string
}

// valuePart is in the names of entries and in no others.
const valuePart = "v:"

// keys are the names of what a tracker has in Redis. All have one hash tag, so that a cluster keeps them on one node and one
// command reads several.
type keys struct {
	prefix string
	// generation is the present generation, and previousGenerations those before it whose entries may still be right.
	generation, previousGenerations string
	// pending is the sum of the pending writes, and unknown exists while a write of unknown outcome may be carried out.
	pending, unknown string
	secret           string
	// none never exists.
	none string
}

// newKeys makes the names for a tracker. What they name keeps its form, so that replicas of former versions notice changes.
func newKeys(tracker, address string) keys {
	name := url.QueryEscape(tracker)
	if address != "" {
		name += ":" + digest(address)[:12]
	}
	prefix := "portico:1:{" + name + "}:"
	return keys{
		prefix: prefix, generation: prefix + "generation", previousGenerations: prefix + "suspect", pending: prefix + "writes",
		unknown: prefix + "doubt", secret: prefix + "secret", none: prefix + "nothing",
	}
}

// channel is where changes are published. Channels belong to a whole server, so the name has the number of the database.
func (k keys) channel(db int) string { return k.prefix + "changes:" + strconv.Itoa(db) }

// value is the name of an entry. The lengths of its parts keep two keys from having one name.
func (k keys) value(of key) string {
	parts := upstream.AppendPart(nil, of.scope.String())
	parts = upstream.AppendPart(parts, of.product)
	return k.prefix + valuePart + digest(string(upstream.AppendPart(parts, of.component)))
}

// lease is the name of the lease on an entry. It depends on the stamp: a read under the present one never waits for a
// response under a former one.
func (k keys) lease(entry string, s stamp) string {
	return k.prefix + "l:" + digest(entry+s.Generation+s.Product+s.Pending)
}

// product is the name of a product's generation. It is wider than a tracker's idea of a name: purging too much is harmless.
func (k keys) product(name string) string { return k.prefix + "p:" + digest(fold(name)) }

// index is the name of the list of a product's entries.
func (k keys) index(name string) string { return k.prefix + "i:" + digest(fold(name)) }

func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
