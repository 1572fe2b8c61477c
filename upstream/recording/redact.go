package recording

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"portico/upstream"
)

// The kinds of placeholders that a replay can fill in.
const (
	kindCaller  = "caller"  // keys, passwords, tokens, cookies
	kindLogin   = "login"   // login names that are no addresses
	kindAddress = "address" // mail addresses
)

const (
	// maxNames bounds the placeholders of a file: any client can send new credentials. Later ones share one for each kind, and requests
	// with it cannot be sent again.
	maxNames = 1 << 16
	// maxSecrets bounds the credentials of one exchange, since each is looked for everywhere in it.
	maxSecrets = 100
	// minSecret is the length in bytes from which on a credential is looked for inside of texts, minWhole that from which on it is
	// looked for where it is the whole text. Shorter ones would be found by chance.
	minSecret = 8
	minWhole  = 4
)

// Why a request cannot be sent again.
const (
	notRead      = "its body was not read to its end"
	notKnown     = "a part of it is not known and might have held a credential"
	payloadGone  = "its payload was left out"
	looksFilled  = "it held text in the form of a placeholder"
	tooManyNames = "there were too many callers to tell them apart"
	pageInput    = "what is sent to pages of the tracker is not kept"
	bodyNotKept  = "its body was not kept"
)

// Redactor takes credentials, mail addresses and unknown values out of exchanges and puts placeholders in their place, equal ones
// for equal texts. It holds digests under a random key of its own and no credential. It is not safe for concurrent use.
type Redactor struct {
	maxData int
	key     string
	names   map[string]string
	given   map[string]int
}

// NewRedactor makes a redactor for one file. Base64 payloads of more than maxData characters are left out; their size and
// digest stay.
func NewRedactor(maxData int) *Redactor {
	return &Redactor{maxData: maxData, key: rand.Text(), names: map[string]string{}, given: map[string]int{}}
}

// Redact makes an exchange that may be kept of one as it passed, credentials and all. The work is done twice where there are
// credentials, since one may be echoed before the place by which it is known.
func (r *Redactor) Redact(e Exchange) Exchange {
	w := &redaction{Redactor: r}
	kept := w.exchange(e)
	switch {
	case len(w.secrets) > maxSecrets:
		return Exchange{Name: e.Name, Unsendable: tooManyNames, Request: Request{Method: http.MethodGet, Path: "/"}}
	case len(w.secrets) > 0:
		var pairs []string
		for _, secret := range w.secrets {
			if len(secret) >= minSecret {
				pairs = append(pairs, secret, w.placeholder(kindCaller, secret))
			}
		}
		w.reason, w.echoes = "", strings.NewReplacer(pairs...)
		kept = w.exchange(e)
	}
	return kept
}

var (
	placeholder = regexp.MustCompile(`\{\{((?:caller|login|address)-\d{1,9})\}\}`)
	elided      = regexp.MustCompile(`\{\{elided [0-9a-f]{64} \d+\}\}`)
	// schemeAndHost matches what may stand before the path of a target.
	schemeAndHost = regexp.MustCompile(`^[^/]*://[^/]*/?`)
	// address matches mail addresses as they stand in texts, in JSON and in queries. It is made when it is needed, since that takes time.
	address = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:[\pL\pN._+\-]|%2[Bb])+(?:@|%40)[\pL\pN](?:[\pL\pN.\-]*[\pL\pN])?`)
	})
)

// redaction is the work on one exchange.
type redaction struct {
	*Redactor
	// secrets are the credentials that were found, and echoes replaces them in other texts.
	secrets []string
	echoes  *strings.Replacer
	// reason is why the request cannot be sent again, the first that was found.
	reason string
}

func (w *redaction) exchange(e Exchange) Exchange {
	in := e.Request
	in.Path = schemeAndHost.ReplaceAllString(in.Path, "/")
	e.Operation = OperationOf(in.Method, in.Path)
	e.Request = Request{w.clean(in.Method), w.target(in.Path), w.headers(in.Headers), w.requestBody(in)}
	e.Unsendable = cmp.Or(e.Unsendable, w.reason)
	for _, found := range placeholder.FindAllStringSubmatch(fmt.Sprintf("%s %v %s", e.Request.Path, e.Request.Headers, e.Request.Body), -1) {
		e.Callers = append(e.Callers, found[1])
	}
	slices.Sort(e.Callers)
	e.Callers = slices.Compact(e.Callers)
	if e.Response != nil {
		e.Response = w.response(in.Path, *e.Response)
	}
	return e
}

// spoil notes why the request cannot be sent again.
func (w *redaction) spoil(reason string) { w.reason = cmp.Or(w.reason, reason) }

// keep gives what is kept of a value, by the name that it has in a request or response: the value itself under a name that is
// known, a placeholder under that of a credential, else a digest. It is the only place where that is decided.
func (w *redaction) keep(name, value string) string {
	name, _, _ = strings.Cut(name, "[")
	trimmed := strings.TrimSpace(value)
	switch {
	case trimmed == "":
		return value
	case isCredential(name):
		return w.credential(value)
	case isLogin(name):
		return w.login(value)
	case len(trimmed) >= minWhole && slices.Contains(w.secrets, trimmed):
		return w.placeholder(kindCaller, trimmed)
	case name == "data" && len(value) > w.maxData:
		w.spoil(payloadGone)
		return elide(value)
	case isKnownName(name) && upstream.EndAtCredential(value) == value:
		return w.clean(value)
	}
	return w.digested(value, notKnown)
}

// digested gives the size of a text and a digest of it that does not reveal it. It cannot be sent again for a reason.
func (w *redaction) digested(text, reason string) string {
	w.spoil(reason)
	return fmt.Sprintf("{{digest-%x-%d}}", w.digest("digest", text)[:8], len(text))
}

// clean takes mail addresses, and the credentials of the exchange, out of a text that is kept. A text in which one stays, in a
// spelling that is not expected, becomes a digest.
func (w *redaction) clean(text string) string {
	if placeholder.MatchString(text) { // filled in, a credential would go where none was
		w.spoil(looksFilled)
	}
	if w.echoes != nil {
		text = w.echoes.Replace(text)
		if w.shows(text) {
			return w.digested(text, notKnown)
		}
	}
	return address().ReplaceAllStringFunc(text, w.address)
}

// shows reports whether a credential is in a text once its escapes are taken off.
func (w *redaction) shows(text string) bool {
	text = strings.NewReplacer(`\`, "", "+", "%2B").Replace(placeholder.ReplaceAllString(text, ""))
	text = html.UnescapeString(unescaped(text))
	return slices.ContainsFunc(w.secrets, func(secret string) bool { return len(secret) >= minSecret && strings.Contains(text, secret) })
}

// credential gives the placeholder of a credential.
func (w *redaction) credential(value string) string {
	if value = strings.TrimSpace(value); value == "" {
		return ""
	}
	if len(w.secrets) <= maxSecrets && !slices.Contains(w.secrets, value) {
		w.secrets = append(w.secrets, value)
	}
	return w.placeholder(kindCaller, value)
}

// login gives the placeholder of a login name.
func (w *redaction) login(value string) string {
	if value = strings.TrimSpace(value); address().FindString(value) == value {
		return w.address(value)
	}
	return w.placeholder(kindLogin, value)
}

// address gives the placeholder of a mail address.
func (w *redaction) address(value string) string {
	return w.placeholder(kindAddress, strings.ToLower(value))
}

// placeholder finds or makes the placeholder of a text.
func (w *redaction) placeholder(kind, text string) string {
	id := w.digest(kind, text)
	if w.names[id] == "" && len(w.names) >= maxNames {
		w.spoil(tooManyNames)
		return "{{" + kind + "-0}}"
	}
	if w.names[id] == "" {
		w.given[kind]++
		w.names[id] = fmt.Sprintf("{{%s-%d}}", kind, w.given[kind])
	}
	return w.names[id]
}

func (r *Redactor) digest(kind, text string) string {
	mac := hmac.New(sha256.New, []byte(r.key))
	mac.Write([]byte(kind + "\x00" + text))
	return string(mac.Sum(nil))
}

// elide gives what stands in place of a payload: digest and size of the content, or of the text where it is no base64. What
// stands in place of one already stays.
func elide(text string) string {
	if elided.FindString(text) == text {
		return text
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		content = []byte(text)
	}
	return fmt.Sprintf("{{elided %x %d}}", sha256.Sum256(content), len(content))
}
