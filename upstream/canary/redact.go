package canary

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Redactor takes content out of JSON that is to be kept. Each process makes its
// own: equal texts show as equal within one process only, and nobody can try out
// what a digest stands for.
type Redactor struct{ key [32]byte }

// NewRedactor makes a redactor with a random key.
func NewRedactor() *Redactor {
	r := &Redactor{}
	_, _ = rand.Read(r.key[:]) // never fails
	return r
}

// Redact gives value without free texts, addresses, names of files and content:
// {"text": {"length": n, "digest": "…6 hex digits"}} stands for each, n in
// characters. What stays is ids, booleans, numbers, times, statuses, flag type
// names and values, content types, and only where these belong. path is where the
// value was, as in Difference.Path or Pointer. nil stays nil, and what is no JSON
// loses everything.
func (r *Redactor) Redact(value jsontext.Value, path string) jsontext.Value {
	if value == nil {
		return nil
	}
	t, ok := newTree(value, nil, maphash.MakeSeed())
	if !ok {
		return r.stand(nil, value)
	}
	work := redaction{redactor: r, tree: t}
	work.value(0, namesOf(path), 0)
	return work.out
}

// redaction writes one value again.
type redaction struct {
	redactor *Redactor
	tree     *tree
	out      []byte
}

// value writes a value. names are those of the members that it is in, the nearest last.
func (w *redaction) value(i int32, names []string, depth int) {
	raw := w.tree.raw(i)
	switch kind := w.tree.nodes[i].kind; {
	case depth > maxDepth:
		w.out = w.redactor.stand(w.out, raw)
	case kind == '{':
		w.object(i, names, depth)
	case kind == '[':
		w.out = append(w.out, '[')
		for child := w.tree.nodes[i].first; child != 0; child = w.tree.nodes[child].next {
			w.comma()
			w.value(child, names, depth+1)
		}
		w.out = append(w.out, ']')
	case kind == '"':
		w.text(unquoted(raw), raw, names)
	case kind == '0' && nameAt(names, 1) == "data":
		w.out = append(w.out, `{"content":"set aside"}`...)
	default:
		w.out = append(w.out, raw...)
	}
}

func (w *redaction) comma() {
	if last := w.out[len(w.out)-1]; last != '[' && last != '{' {
		w.out = append(w.out, ',')
	}
}

func (w *redaction) object(i int32, names []string, depth int) {
	w.out = append(w.out, '{')
	for child := w.tree.nodes[i].first; child != 0; child = w.tree.nodes[child].next {
		name, within := string(w.tree.name(child)), names
		if !isDigits(name) {
			within = append(slices.Clip(names), name)
		}
		w.comma()
		w.out = append(w.out, quote(w.redactor.name(name))...)
		w.out = append(w.out, ':')
		w.value(child, within, depth+1)
	}
	w.out = append(w.out, '}')
}

// text writes a text that may stay, or what stands for it.
func (w *redaction) text(text []byte, raw jsontext.Value, names []string) {
	shown, known := keptText(string(text), names, w.redactor)
	switch {
	case !known:
		w.out = w.redactor.stand(w.out, text)
	case shown == string(text):
		w.out = append(w.out, raw...)
	default:
		w.out = append(w.out, quote(shown)...)
	}
}

// name is the name of a member; one that does not look like a field's name may be data.
func (r *Redactor) name(name string) string {
	if isFieldName(name) || isDigits(name) || name == "flagtypes.name" {
		return name
	}
	return "~" + r.digest([]byte(name))
}

// stand appends what stands for a text.
func (r *Redactor) stand(dst []byte, text []byte) []byte {
	return fmt.Appendf(dst, `{"text":{"length":%d,"digest":"%s"}}`, utf8.RuneCount(text), r.digest(text))
}

func (r *Redactor) digest(text []byte) string {
	mac := hmac.New(sha256.New, r.key[:])
	_, _ = mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:3])
}
