package proxy

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/julienschmidt/httprouter"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// requestContext is one request and its response. It is the http.ResponseWriter of the request, and belongs to its goroutine.
type requestContext struct {
	recorder
	server *Server
	r      *http.Request
	start  time.Time
	record Record
	span   Span // nil where requests are not traced
	// cause is what is logged of an error.
	cause error
	// values are those of the response's header. The first of them have their place in firstValues.
	values      []string
	firstValues [8]string
	// path is the normal path, escaped, without the path of the tracker's address. The client wrote that before it if prefix is set.
	path, prefix string
	// trusted says that the request comes straight from a trusted proxy.
	trusted  bool
	resource resource
	segments httprouter.Params

	form   representation
	query  parameters
	caller upstream.Caller
	// blobs are the payloads that were read. content is that of an attachment create, nil without one.
	blobs   []*jsonblob.Blob
	content *jsonblob.Blob
	// bodyShare is what the body has of the memory for bodies, replyShare what the response has of that for responses.
	bodyShare, replyShare share
	// written are the members of a write without its credentials.
	written mapping.Members
	// liftDeadline lets the call take any time from now on, and endCall ends its context; nil before the call.
	liftDeadline func() bool
	endCall      func()
	// sent says that a tracker may have got a write: whatever fails from here on, its outcome is not known.
	sent bool
	// unproven says that no tracker was seen to accept the credential yet.
	unproven bool
}

// newContext begins with what every response needs.
func (s *Server) newContext(w http.ResponseWriter, r *http.Request) *requestContext {
	rc := &requestContext{
		recorder: newRecorder(w, s.options.ClientPause.Taking), server: s, r: r, start: time.Now(),
		record: Record{ID: requestID(r.Header.Get(headerRequestID)), Operation: OpNone},
		form:   negotiate(r.Header), bodyShare: share{of: s.bodies}, replyShare: share{of: s.replies},
	}
	rc.values = rc.firstValues[:0]
	rc.caller = upstream.Caller{UserAgent: r.UserAgent(), RequestID: rc.record.ID}
	rc.caller.Address, rc.trusted = s.options.TrustedProxies.client(r)
	rc.set(headerRequestID, rc.record.ID)
	return rc
}

// requestID takes the client's own id if it is short and harmless.
func requestID(offered string) string {
	if offered != "" && len(offered) <= 64 && strings.Trim(offered, alphanumerics+"-_.:/+=") == "" {
		return offered
	}
	return rand.Text()
}

// TrustedProxies are the networks whose X-Forwarded-* headers are believed.
type TrustedProxies []netip.Prefix

func (t TrustedProxies) contains(address netip.Addr) bool {
	return slices.ContainsFunc(t, func(network netip.Prefix) bool { return network.Contains(address) })
}

// client returns the address of the client, and whether the request comes straight from a trusted proxy. The address is the peer's,
// or, where trusted proxies stand between, the last one in X-Forwarded-For that is not itself one of them.
func (t TrustedProxies) client(r *http.Request) (client string, trusted bool) {
	address, known := hopAddress(r.RemoteAddr)
	if !known {
		return "", false
	}
	if trusted = t.contains(address); trusted {
		for _, item := range slices.Backward(items(r.Header["X-Forwarded-For"])) {
			hop, known := hopAddress(strings.TrimSpace(item))
			if !known {
				break
			}
			if address = hop; !t.contains(hop) {
				break
			}
		}
	}
	return address.String(), trusted
}

// hopAddress reads an address as RemoteAddr and X-Forwarded-For have it: with a port or without, IPv6 in brackets or not.
func hopAddress(item string) (address netip.Addr, known bool) {
	if withPort, err := netip.ParseAddrPort(item); err == nil {
		return withPort.Addr().Unmap(), true
	}
	plain, err := netip.ParseAddr(strings.Trim(item, "[]"))
	return plain.Unmap(), err == nil
}

// set sets a field of the response's header. name is written as net/http keeps it, which Header.Set would check letter by letter
// each time.
func (rc *requestContext) set(name, value string) {
	rc.values = append(rc.values, value)
	at := len(rc.values)
	rc.Header()[name] = rc.values[at-1 : at : at]
}

// identify reads the query, and for reads the caller. What a write says in its body comes later.
func (rc *requestContext) identify() (err error) {
	var isUTF8 bool
	rc.query, isUTF8 = parseQuery(rc.r.URL.RawQuery)
	if rc.form, err = rc.form.withCallback(rc.query.all("callback")...); err != nil {
		return err
	}
	switch {
	case !rc.record.Operation.IsWrite():
		rc.caller.Credentials, err = credentials(rc.r.Header, rc.query, nil)
	case !isUTF8:
		err = mapping.Refuse(mapping.CodeJSON, "The parameters in the address are not valid UTF-8.")
	}
	return err
}

// parameter is one name and value of a query or of a form body.
type parameter struct{ name, value string }

// parameters are those of one request in their order.
type parameters []parameter

// parseQuery reads a query as a tracker does: & and ; separate, a plus is a blank, and an invalid escape stays as it
// is written. Text that is not UTF-8 is taken as Latin-1, and ok is false (recorded as proto.semicolon,
// proto.bad_percent_query, proto.latin1_query).
func parseQuery(query string) (list parameters, ok bool) {
	ok = true
	for piece := range strings.FieldsFuncSeq(query, isSeparator) {
		name, value, _ := strings.Cut(piece, "=")
		name, nameOK := queryText(name, false)
		value, valueOK := queryText(value, name == "data")
		list = append(list, parameter{name, value})
		ok = ok && nameOK && valueOK
	}
	return list, ok
}

func isSeparator(r rune) bool { return r == '&' || r == ';' }

// queryText decodes a name or value. In base64 a plus means itself, whatever the rules of forms say: otherwise a payload would
// be damaged silently.
func queryText(text string, base64 bool) (plain string, ok bool) {
	if !base64 {
		text = strings.ReplaceAll(text, "+", " ")
	}
	if plain = unescapeAll(text); utf8.ValidString(plain) {
		return plain, true
	}
	return latin1(plain), false
}

func latin1(text string) string {
	var decoded strings.Builder
	for i := range len(text) {
		decoded.WriteRune(rune(text[i]))
	}
	return decoded.String()
}

// all returns every value of a name.
func (p parameters) all(name string) []string {
	var values []string
	for _, each := range p {
		if each.name == name {
			values = append(values, each.value)
		}
	}
	return values
}

// fieldNames reads include_fields or exclude_fields: repeated, or joined by comma, blank or plus (tracker-behaviour.md section 5).
func (p parameters) fieldNames(name string) []string {
	return strings.FieldsFunc(strings.Join(p.all(name), ","), func(r rune) bool { return strings.ContainsRune(", +\t\r\n", r) })
}

// isCredential reports whether a parameter or member of that name is a credential.
func isCredential(name string) bool {
	forms := new(upstream.Credentials).Forms()
	return slices.ContainsFunc(forms[:], func(form upstream.CredentialForm) bool { return slices.Contains(form.Parameters[:], name) })
}

// credentialText removes the blanks around a credential. To a password they belong.
func credentialText(form upstream.CredentialForm, text string) string {
	if form.Parameters[0] == "password" {
		return text
	}
	return strings.TrimSpace(text)
}

// credentials gathers what the client showed. The query beats the body; what is in the body is taken out of it. A complete
// credential in either of them beats all headers, whatever their kinds, as a stock tracker ignores those. members is nil for reads.
func credentials(header http.Header, query parameters, members *mapping.Members) (upstream.Credentials, error) {
	found, err := parameterCredentials(query, members)
	if err == nil {
		found.AddHeaders(header)
	}
	return found, err
}

// parameterCredentials gathers those of the query and the body. A credential in the query twice is refused on reads; on writes the
// first counts. A tracker takes an empty password for a wrong one, and a login without any for an anonymous caller.
func parameterCredentials(query parameters, members *mapping.Members) (found upstream.Credentials, err error) {
	passwordGiven := false
	for _, form := range found.Forms() {
		var inQuery, inBody string
		for _, name := range form.Parameters {
			values := query.all(name)
			if len(values) > 1 && members == nil {
				return found, badCredential(name)
			}
			if len(values) > 0 {
				inQuery = cmp.Or(inQuery, credentialText(form, values[0]))
			}
			var value jsontext.Value
			if members != nil {
				value = members.Take(name)
			}
			text, ok := mapping.Text(value)
			given := value != nil && value.Kind() != 'n'
			if given && !ok {
				return found, badCredential(name)
			}
			inBody = cmp.Or(inBody, credentialText(form, text))
			passwordGiven = passwordGiven || form.Value == &found.Password && (given || len(values) > 0)
		}
		*form.Value = cmp.Or(inQuery, inBody)
	}
	if found.Login != "" && found.Password == "" && passwordGiven {
		return found, mapping.Refuse(mapping.CodeBadLogin, "The login name or the password is wrong.")
	}
	return found, nil
}

func badCredential(name string) *mapping.Error {
	// The compiler takes a name from a CredentialForm for all of it: without the copy, it would put what every request shows on the heap.
	return mapping.Refuse(mapping.CodeBadKey, "The parameter %q must be given once, as a string.", strings.Clone(name))
}
