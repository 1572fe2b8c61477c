package proxy

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// bodyCredentials finds credentials in the beginning of a body, as a tracker reads it: the two form types, and what has no
// type, are forms, everything else is JSON (tracker-behaviour.md section 1, Request bodies). Of a repeated form field the first counts, of a member
// the last.
func bodyCredentials(header http.Header, head []byte) mapping.Members {
	var list parameters
	counts := func(name string) bool { return isCredential(name) && list.all(name) == nil } // all of a form would take 32 times as much memory
	switch kind, attributes := mediaType(header); {
	case kind == "multipart/form-data":
		reader := multipart.NewReader(bytes.NewReader(head), attributes["boundary"])
		for part, err := reader.NextPart(); err == nil; part, err = reader.NextPart() {
			if name := part.FormName(); counts(name) {
				value, _ := io.ReadAll(part) // what was looked at may end within it
				list = append(list, parameter{name, string(value)})
			}
		}
	case kind == "application/x-www-form-urlencoded", header.Get("Content-Type") == "":
		for field := range strings.FieldsFuncSeq(string(head), isSeparator) {
			if read, _ := parseQuery(field); counts(read[0].name) {
				list = append(list, read...)
			}
		}
	default:
		var found mapping.Members
		_ = bugzilla.WalkJSON(bytes.NewReader(head), func(depth int, name, value string) {
			if depth == 1 && isCredential(name) && value != "null" {
				found.SetText(name, value)
			}
		})
		return found
	}
	return list.members(false)
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
	given := found.Forms()
	for i, form := range inHeaders.Forms() {
		value := *form.Value
		if value != "" || shown && *given[i].Value != "" {
			// A tracker would take a credential without a value for the credential, and the caller for an anonymous one.
			out.URL.RawQuery = without(out.URL.RawQuery, func(each parameter) bool {
				return slices.Contains(form.Parameters[:], each.name) && credentialText(form, each.value) == ""
			})
		}
		if value != "" { // the longer name clashes with no field
			out.URL.RawQuery = strings.TrimPrefix(out.URL.RawQuery+"&"+form.Parameters[1]+"="+url.QueryEscape(value), "&")
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
		return mapping.NewError(mapping.CodeLoginRequired, upstream.ReasonNoMappedKey,
			"Portico can neither change nor check the credential in this body: show an API key in the header X-BUGZILLA-API-KEY. Nothing was sent.")
	}
	r := p.r.Clone(p.r.Context())
	adaptHeaders(r.Header, true)
	r.Header.Del("Authorization")
	r.Header.Del("Cookie")
	r.Header.Set("X-Bugzilla-Api-Key", mapped.Credentials.APIKey)
	r.URL.RawQuery = without(r.URL.RawQuery, func(each parameter) bool { return isCredential(each.name) })
	p.r = r
	p.query, _ = parseQuery(r.URL.RawQuery)
	return nil
}

// adaptHeaders prepares headers for a tracker that reads credentials there. Where one is shown elsewhere, those of trackers and bearer
// tokens are removed. Else an API key that came as a bearer token moves to the header that trackers read.
func adaptHeaders(header http.Header, shown bool) {
	bearer := upstream.Credentials{Authorization: header.Get("Authorization")}.Bearer()
	if shown {
		for _, form := range new(upstream.Credentials).Forms() {
			header.Del(form.Header)
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

// without removes parameters from a query, and leaves the others as they are written.
func without(query string, is func(parameter) bool) string {
	return strings.Join(slices.DeleteFunc(strings.FieldsFunc(query, isSeparator), func(piece string) bool {
		list, _ := parseQuery(piece)
		return is(list[0])
	}), "&")
}
