package proxy

import (
	"bytes"
	"cmp"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// credentialKind is one kind of credential, an index of credentialNames.
type credentialKind int

const passwordKind credentialKind = 2

// credentialNames are the parameters that carry each kind, the stronger name first (tracker-behaviour.md section 1, Credentials).
var credentialNames = [...][2]string{
	{"api_key", "Bugzilla_api_key"}, {"login", "Bugzilla_login"}, {"password", "Bugzilla_password"}, {"token", "Bugzilla_token"},
}

// field is where a credential of that kind is kept.
func (k credentialKind) field(c *upstream.Credentials) *string {
	return [...]*string{&c.APIKey, &c.Login, &c.Password, &c.Token}[k]
}

// isCredential reports whether a parameter or member of that name is a credential.
func isCredential(name string) bool {
	return slices.ContainsFunc(credentialNames[:], func(names [2]string) bool { return slices.Contains(names[:], name) })
}

// text removes the blanks around a credential. To a password they belong.
func (k credentialKind) text(text string) string {
	if k == passwordKind {
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
	for i, names := range credentialNames {
		var inQuery, inBody string
		kind := credentialKind(i)
		for _, name := range names {
			values := query.all(name)
			if len(values) > 1 && members == nil {
				return found, badCredential(name)
			}
			if len(values) > 0 {
				inQuery = cmp.Or(inQuery, kind.text(values[0]))
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
			inBody = cmp.Or(inBody, kind.text(text))
			passwordGiven = passwordGiven || kind == passwordKind && (given || len(values) > 0)
		}
		*kind.field(&found) = cmp.Or(inQuery, inBody)
	}
	if found.Login != "" && found.Password == "" && passwordGiven {
		return found, mapping.Refuse(mapping.CodeBadLogin, "The login name or the password is wrong.")
	}
	return found, nil
}

func badCredential(name string) *mapping.Error {
	return mapping.Refuse(mapping.CodeBadKey, "The parameter %q must be given once, as a string.", name)
}

// bodyCredentials finds credentials in the beginning of a body, as a tracker reads it: the two form types, and what has no
// type, are forms, everything else is JSON (tracker-behaviour.md section 1, Request bodies). Of a repeated form field the first counts, of a member
// the last.
func bodyCredentials(header http.Header, head []byte) mapping.Members {
	var list parameters
	switch kind, attributes := mediaType(header); {
	case kind == "multipart/form-data":
		reader := multipart.NewReader(bytes.NewReader(head), attributes["boundary"])
		for part, err := reader.NextPart(); err == nil; part, err = reader.NextPart() {
			value, _ := io.ReadAll(part) // what was looked at may end within it
			list = append(list, parameter{part.FormName(), string(value)})
		}
	case kind == "application/x-www-form-urlencoded", header.Get("Content-Type") == "":
		list, _ = parseQuery(string(head))
	default:
		var found mapping.Members
		_, _ = bugzilla.WalkJSON(bytes.NewReader(head), func(depth int, name, value string) {
			if depth == 1 && isCredential(name) && value != "null" {
				found.SetText(name, value)
			}
		})
		return found
	}
	return slices.DeleteFunc(list, func(each parameter) bool { return !isCredential(each.name) }).members(false)
}

// setCredentials gives header credentials as parameters to a tracker that does not read headers (docs/reference/clients.md duty 5). As for the
// seven operations, a complete credential in the query or the body beats all headers. What a tracker cannot read counts as one, since
// the tracker refuses it.
func (p *passing) setCredentials(out *http.Request) {
	if !isREST(p.path) {
		return
	}
	body := p.body.Clone()
	found, err := parameterCredentials(p.query, &body)
	shown := err != nil || found.Complete()
	if dialect := p.target.Dialect; dialect == nil || dialect(p.r.Context()).HeaderCredentials {
		adaptHeaders(out.Header, shown)
		return
	}
	var inHeaders upstream.Credentials
	if !shown {
		inHeaders.AddHeaders(p.r.Header)
	}
	for i, names := range credentialNames {
		kind := credentialKind(i)
		value := *kind.field(&inHeaders)
		if value != "" || shown && *kind.field(&found) != "" {
			out.URL.RawQuery = kind.withoutBlank(out.URL.RawQuery)
		}
		if value != "" {
			out.URL.RawQuery = joinQuery(out.URL.RawQuery, names[1], value) // the longer name clashes with no field
		}
	}
	p.bearerAsKey = inHeaders.KeyIsBearer()
}

// mapKey puts the key that the target is to see into a header, in place of all that the client showed in the query and in headers.
// What is in a body stays there, so that such a request is refused. The caller stays the one that the client showed.
func (p *passing) mapKey() error {
	if p.target.Keys == nil {
		return nil
	}
	mapped, err := p.target.Keys(p.caller)
	isMapped := mapped.Credentials != p.caller.Credentials
	switch {
	case err != nil || !isMapped && !(p.inBody && bugzilla.IsRPC(p.script)):
		return err
	case p.inBody:
		return failure(mapping.CodeLoginRequired, upstream.ReasonNoMappedKey,
			"This tracker needs another key, and Portico cannot change one in the body: show it in the header X-BUGZILLA-API-KEY. Nothing was sent.", nil)
	}
	r := p.r.Clone(p.r.Context())
	adaptHeaders(r.Header, true)
	r.Header.Del("Authorization")
	r.Header.Del("Cookie")
	r.Header.Set("X-Bugzilla-Api-Key", mapped.Credentials.APIKey)
	r.URL.RawQuery = strings.Join(slices.DeleteFunc(strings.FieldsFunc(r.URL.RawQuery, isSeparator), func(piece string) bool {
		list, _ := parseQuery(piece)
		return isCredential(list[0].name)
	}), "&")
	p.r = r
	p.query, _ = parseQuery(r.URL.RawQuery)
	return nil
}

// adaptHeaders prepares headers for a tracker that reads credentials there. Where one is shown elsewhere, those of trackers and bearer
// tokens are removed. Else an API key that came as a bearer token moves to the header that trackers read.
func adaptHeaders(header http.Header, shown bool) {
	bearer := upstream.Credentials{Authorization: header.Get("Authorization")}.Bearer()
	if shown {
		for _, name := range []string{"X-Bugzilla-Api-Key", "X-Bugzilla-Token", "X-Bugzilla-Login", "X-Bugzilla-Password"} {
			header.Del(name)
		}
	} else if !mapping.IsAPIKey(bearer) || header.Get("X-Bugzilla-Api-Key") != "" {
		return
	} else {
		header.Set("X-Bugzilla-Api-Key", bearer)
	}
	if bearer != "" {
		header.Del("Authorization")
	}
}

// withoutBlank removes parameters of that kind without a value. A tracker would take such a one for the credential, and the caller
// for an anonymous one.
func (k credentialKind) withoutBlank(query string) string {
	var kept []string
	for piece := range strings.FieldsFuncSeq(query, isSeparator) {
		list, _ := parseQuery(piece)
		if !slices.Contains(credentialNames[k][:], list[0].name) || k.text(list[0].value) != "" {
			kept = append(kept, piece)
		}
	}
	return strings.Join(kept, "&")
}

func joinQuery(query, name, value string) string {
	if query != "" {
		query += "&"
	}
	return query + name + "=" + url.QueryEscape(value)
}
