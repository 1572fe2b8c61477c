package recording

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Seen is an exchange as it went by, credentials and all. A Redactor makes of it what may be kept.
type Seen struct {
	// Name and Note become those of the exchange.
	Name, Note string
	Method     string
	// Target is the request line's, escapes and all.
	Target string
	Header http.Header
	// Body is nil when the request had none. BodyCut tells that there was more of it, Size bytes in all.
	Body    []byte
	BodyCut int64
	// Status is 0 when there was no answer.
	Status int
	Answer http.Header
	// Content is the body of the answer. ContentCut tells that there was more of it, so many bytes in all.
	Content    []byte
	ContentCut int64
}

// The kinds of placeholders.
const (
	kindCaller  = "caller"  // keys, passwords, tokens, cookies
	kindLogin   = "login"   // login names that are no addresses
	kindAddress = "address" // addresses of people
)

// mostNames bounds what a Redactor remembers. Whoever comes later shares one placeholder, and such requests cannot be told
// apart or made again.
const mostNames = 1 << 16

// mostSecrets bounds the credentials of one exchange. No client has as many, and looking for each of them everywhere takes
// time.
const mostSecrets = 100

// Why a request cannot be made again.
const (
	tooLong      = "its body was longer than the recorder keeps"
	unreadable   = "a part of it could not be read and might have held a credential"
	payloadGone  = "its payload was left out"
	looksFilled  = "it held text in the form of a placeholder"
	tooManyNames = "there were too many callers to tell them apart"
	pageInput    = "what is sent to pages of the tracker is not kept"
)

// Redactor takes credentials and addresses out of exchanges and puts placeholders in their place, equal ones for equal
// texts. It keeps digests under a key of its own and no credential. It is not for several goroutines at once.
type Redactor struct {
	maxData int
	key     []byte
	names   map[[sha256.Size]byte]string
	given   map[string]int
	// plain gives placeholders without numbers.
	plain bool
}

// NewRedactor makes a redactor for one file. Base64 payloads of more than maxData characters are left out; their size and
// digest stay.
func NewRedactor(maxData int) *Redactor {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return &Redactor{maxData: maxData, key: key, names: map[[sha256.Size]byte]string{}, given: map[string]int{}}
}

// Redact makes an exchange that may be kept. Whatever cannot be read is left out.
func (r *Redactor) Redact(seen Seen) Exchange {
	s := &sheet{redactor: r}
	e := s.exchange(seen)
	if slices.ContainsFunc(s.secrets, s.isShort) {
		// The same may stand elsewhere, before the place by which it is known.
		s.reason = ""
		e = s.exchange(seen)
	}
	if s.flooded {
		return Exchange{Name: e.Name, Operation: e.Operation, Unsendable: tooManyNames, Request: Request{Method: "GET", Path: "/" + hiddenText}}
	}
	s.sweep(&e)
	return e
}

// exchange redacts each part of an exchange by what it is.
func (s *sheet) exchange(seen Seen) Exchange {
	e := Exchange{Name: seen.Name, Note: seen.Note, Operation: string(OperationOf(seen.Method, seen.Target))}
	s.literal(seen.Target, string(seen.Body))
	for _, values := range seen.Header {
		s.literal(values...)
	}
	e.Request = Request{Method: seen.Method, Path: s.target(seen.Target), Headers: s.requestHeaders(seen.Header)}
	e.Request.Body = s.requestBody(seen)
	reason := s.reason
	if seen.Status != 0 {
		e.Response = s.response(seen)
	}
	e.Unsendable = reason
	return e
}

// sheet is the work on one exchange.
type sheet struct {
	redactor *Redactor
	// secrets are what was found, to be looked for elsewhere too.
	secrets []string
	// flooded tells that there are more of them.
	flooded bool
	// reason is why the request cannot be made again, the first that was found.
	reason string
}

func (s *sheet) spoilt(reason string) {
	if s.reason == "" {
		s.reason = reason
	}
}

// literal looks for text that only placeholders should look like: filled in, a credential would go where none was.
func (s *sheet) literal(texts ...string) {
	for _, text := range texts {
		if placeholder.MatchString(text) || elided.MatchString(text) {
			s.spoilt(looksFilled)
		}
	}
}

// caller gives the placeholder of a credential; an empty one stays empty.
func (s *sheet) caller(value string) string {
	if value = strings.TrimSpace(value); value == "" {
		return ""
	}
	if !s.note(value) {
		return "{{" + kindCaller + "-x}}"
	}
	return s.name(kindCaller, value)
}

// note keeps a credential in mind, as long as there are not too many.
func (s *sheet) note(secret string) bool {
	switch {
	case slices.Contains(s.secrets, secret):
	case len(s.secrets) >= mostSecrets:
		s.flooded = true
		s.spoilt(tooManyNames)
		return false
	default:
		s.secrets = append(s.secrets, secret)
	}
	return true
}

// login gives the placeholder of a login name.
func (s *sheet) login(value string) string {
	if value = strings.TrimSpace(value); value == "" {
		return ""
	}
	if address.FindString(value) == value {
		return s.address(value)
	}
	return s.name(kindLogin, value)
}

// address gives the placeholder of an address.
func (s *sheet) address(value string) string {
	plain := strings.NewReplacer("%40", "@", "%2B", "+", "%2b", "+").Replace(value)
	return s.name(kindAddress, strings.ToLower(plain))
}

// name finds or gives the placeholder of a text.
func (s *sheet) name(kind, text string) string {
	r := s.redactor
	if r.plain {
		return "{{" + kind + "}}"
	}
	id := r.digest(kind, text)
	name, known := r.names[id]
	switch {
	case known:
	case len(r.names) >= mostNames:
		s.spoilt(tooManyNames)
		name = kind + "-x"
	default:
		r.given[kind]++
		name = fmt.Sprintf("%s-%d", kind, r.given[kind])
		r.names[id] = name
	}
	return "{{" + name + "}}"
}

func (r *Redactor) digest(kind, text string) [sha256.Size]byte {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(kind + "\x00" + text))
	return [sha256.Size]byte(mac.Sum(nil))
}
