package proxy

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// credentialsLimit is how much of a passing body is looked through for credentials.
const credentialsLimit = 1 << 20

// withBodyCredentials notes the credentials in the body of a REST request outside the seven operations that could lose against
// what is elsewhere in the request, and must not. The body stays as it is.
func withBodyCredentials(r *http.Request) error {
	if !isREST(r.URL.Path) || isReading(r.Method) || r.ContentLength == 0 || !contested(r) {
		return nil
	}
	body := r.Body
	head, err := io.ReadAll(io.LimitReader(body, credentialsLimit))
	if err != nil {
		return err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
	passingOf(r).credentials = bodyCredentials(r.Header, head)
	return nil
}

// contested tells whether there are credentials in the headers, or empty ones in the query.
func contested(r *http.Request) bool {
	var shown upstream.Credentials
	addHeaders(&shown, r.Header)
	shown.Cookies = ""
	query, _ := parseQuery(r.URL.RawQuery)
	return shown != (upstream.Credentials{}) || slices.ContainsFunc(query, func(each parameter) bool {
		return isCredential(each.name) && strings.TrimSpace(each.value) == ""
	})
}

// bodyCredentials finds credentials in the beginning of a body, as a tracker reads it: the two form types, and what has no
// type, are forms, everything else is JSON (wire-facts.md, section 1, Request bodies).
func bodyCredentials(header http.Header, head []byte) mapping.Members {
	switch kind, attributes := mediaType(header); {
	case kind == "multipart/form-data":
		return multipartCredentials(head, attributes["boundary"])
	case kind == "application/x-www-form-urlencoded", header.Get("Content-Type") == "":
		list, _ := parseQuery(string(head))
		return list.credentials()
	default:
		return jsonCredentials(head)
	}
}

// credentials gives those parameters that are credentials. Of a repeated one the first counts.
func (p parameters) credentials() mapping.Members {
	var found mapping.Members
	for _, each := range p {
		if isCredential(each.name) && found.Get(each.name) == nil {
			found.Set(each.name, quoted(nil, each.value))
		}
	}
	return found
}

func multipartCredentials(head []byte, boundary string) mapping.Members {
	var list parameters
	reader := multipart.NewReader(bytes.NewReader(head), boundary)
	for {
		part, err := reader.NextPart()
		if err != nil {
			return list.credentials()
		}
		if !isCredential(part.FormName()) {
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return list.credentials()
		}
		list = append(list, parameter{part.FormName(), string(value)})
	}
}

// jsonCredentials reads an object as leniently as a tracker: of members with one name the last counts, and text that is not
// UTF-8 does no harm. What comes before a mistake, or before the end of what was looked at, is found.
func jsonCredentials(head []byte) mapping.Members {
	var found mapping.Members
	decoder := jsontext.NewDecoder(bytes.NewReader(head), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if decoder.PeekKind() != '{' {
		return nil
	}
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() == '"' {
		var name jsontext.Token
		var value jsontext.Value
		if name, err = decoder.ReadToken(); err != nil {
			break
		}
		member := name.String()
		if value, err = decoder.ReadValue(); err == nil && isCredential(member) {
			found.Set(member, value.Clone())
		}
	}
	return found
}

// credentialForm is a kind of credential, or several that prove something only together: a login and a password.
type credentialForm []credentialKind

// shownBy tells whether the query and the body hold the whole form. A login alone proves nothing, and /rest/valid_login asks
// about one; a password alone is a field of users. What a tracker cannot read counts too, since it refuses that.
func (f credentialForm) shownBy(query parameters, body mapping.Members) bool {
	for _, kind := range f {
		rest := body.Clone()
		inQuery, badQuery := kind.fromQuery(query, true)
		inBody, badBody := kind.fromBody(&rest)
		if inQuery == "" && inBody == "" && badQuery == nil && badBody == nil {
			return false
		}
	}
	return true
}

// nameBeside tells which names count in a query beside a body. The longer ones clash with no field, but a tracker lets the
// shorter ones win, even if they are empty.
func (f credentialForm) nameBeside(body mapping.Members) int {
	for _, kind := range f {
		if body.Get(kind.names[0]) == nil {
			return 1
		}
	}
	return 0
}
