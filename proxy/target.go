package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"portico/mapping"
	"portico/upstream"
)

// Target is a tracker that paths outside the interface can stream through to.
type Target struct {
	// Base is the address of the tracker's front page.
	Base *url.URL
	// Transport carries the requests. It must leave bodies as they are, so it must not ask for compression by itself, and it
	// tells httptrace of its connections.
	Transport http.RoundTripper
	// Names are hosts, with a port where it is unusual, that the tracker calls itself besides that of Base. Redirects to
	// them are turned to the name that the client used.
	Names []string
	// HeaderCredentials tells whether the tracker reads credentials in headers. Where it does not, those of REST requests
	// are given as query parameters too. Nil means that it does.
	HeaderCredentials func(context.Context) bool
}

func (t *Target) check() error {
	if t.Base == nil || t.Base.Scheme != "http" && t.Base.Scheme != "https" || t.Base.Host == "" {
		return errors.New("the base of the passthrough must be an http or https address")
	}
	if t.Transport == nil {
		return errors.New("a passthrough needs a transport")
	}
	return nil
}

// usual is the target of requests for which none is chosen.
func (p *Passthrough) usual() *Target {
	return &Target{Base: p.Base, Transport: p.Transport, Names: p.Names, HeaderCredentials: p.HeaderCredentials}
}

// choose finds the target of a request. Every one but those that only read counts as a write, since what a call of the older
// interfaces does is in its body; so does a link that changes.
func (s *Server) choose(r *http.Request) *Target {
	pass := &s.options.Passthrough
	if pass.Choose != nil {
		if chosen := pass.Choose(s.passingCaller(r), !isReading(r.Method) || ChangesByLink(r)); chosen != nil {
			return chosen
		}
	}
	return s.usual
}

// passingCaller is who asks for something that is no operation. Of the body only those credentials count that beat some in
// the headers.
func (s *Server) passingCaller(r *http.Request) upstream.Caller {
	record := recordOf(r.Context())
	caller := upstream.Caller{Address: record.client, UserAgent: r.UserAgent(), RequestID: record.ID}
	query, _ := parseQuery(r.URL.RawQuery)
	var err error
	body := passingOf(r).credentials.Clone()
	if caller.Credentials, err = credentials(r.Header, query, &body); err != nil {
		caller.Credentials = upstream.Credentials{}
	}
	return caller
}

// chosen carries requests to the target that each was made for. It makes sure that an answer knows what it answers.
type chosen struct{}

// RoundTrip implements http.RoundTripper.
func (chosen) RoundTrip(r *http.Request) (*http.Response, error) {
	if outgrown(r) {
		return nil, tooLarge(mapping.CodeURILong, "With the credentials in it, the address of this request is too long for the tracker.", nil)
	}
	response, err := passingOf(r).target.Transport.RoundTrip(r)
	if response != nil {
		response.Request = r
	}
	return response, err
}

// outgrown tells whether a request line has become longer on its way than web servers take: by a header credential that the
// tracker reads in the query only. One that was too long before is left to the tracker's word.
func outgrown(r *http.Request) bool {
	rest := len(r.Method) + len("  HTTP/1.1")
	return rest+len(r.RequestURI) <= defaultURI && rest+len(r.URL.RequestURI()) > defaultURI
}
