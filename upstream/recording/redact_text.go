package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	placeholder = regexp.MustCompile(`\{\{((?:caller|login|address)-(?:\d{1,7}|x))\}\}`)
	elided      = regexp.MustCompile(`\{\{elided ([0-9a-f]{64}) (\d+)\}\}`)
	either      = regexp.MustCompile(placeholder.String() + `|` + elided.String())
	// address matches addresses of people as they stand in texts, in JSON and in queries.
	address = regexp.MustCompile(`(?:[\pL\pN._+\-]|%2[Bb])+(?:@|%40)[\pL\pN](?:[\pL\pN.\-]*[\pL\pN])?`)
)

// shortest is the length in bytes from which on a credential is looked for in places where none should be. Shorter ones
// would be found by chance.
const shortest = 8

// sweep takes what was found in one place of an exchange out of all other places, and addresses out of everything.
func (s *sheet) sweep(e *Exchange) {
	c := &cleaner{sheet: s, replacer: s.replacer()}
	e.Request.Method = c.line(e.Request.Method)
	e.Request.Path = c.target(e.Request.Path)
	c.headers(e.Request.Headers)
	if e.Request.Body != nil {
		body, ok := c.body(e.Request.Body)
		if e.Request.Body = body; !ok {
			s.spoilt(unreadable)
		}
	}
	if e.Name == "" {
		e.Name = e.Request.Method + " " + e.Request.Path
	}
	e.Name, e.Note = c.line(e.Name), c.line(e.Note)
	e.Callers = s.used(e)
	if e.Response == nil {
		return
	}
	c.headers(e.Response.Headers)
	size := int64(len(e.Response.Body))
	body, ok := c.body(e.Response.Body)
	if e.Response.Body = body; !ok {
		e.Response.Size = size
	}
}

// used lists the placeholders of a request.
func (s *sheet) used(e *Exchange) []string {
	var names []string
	look := func(text string) {
		for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
			names = append(names, found[1])
		}
	}
	look(e.Request.Path)
	for _, value := range e.Request.Headers {
		look(value)
	}
	look(string(e.Request.Body))
	slices.Sort(names)
	return slices.Compact(names)
}

// replacer replaces the secrets in all their spellings, longer ones first.
func (s *sheet) replacer() *strings.Replacer {
	type pair struct{ old, new string }
	var pairs []pair
	for _, secret := range s.secrets {
		for _, spelling := range spellings(secret) {
			if len(spelling) >= shortest {
				pairs = append(pairs, pair{spelling, s.known(secret)})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return len(b.old) - len(a.old) })
	var list []string
	for _, p := range pairs {
		list = append(list, p.old, p.new)
	}
	return strings.NewReplacer(list...)
}

// known gives the placeholder of a credential that has one, else a word.
func (s *sheet) known(secret string) string {
	if name, ok := s.redactor.names[s.redactor.digest(kindCaller, secret)]; ok {
		return "{{" + name + "}}"
	}
	return "removed"
}

// spellings are the ways in which a credential is written in requests and answers.
func spellings(secret string) []string {
	quoted, _ := jsontext.AppendQuote(nil, secret) // what is not UTF-8 is replaced
	var marked bytes.Buffer
	_ = xml.EscapeText(&marked, []byte(secret)) // a Buffer takes everything
	inJSON := strings.Trim(string(quoted), `"`)
	return []string{
		secret, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), url.QueryEscape(secret), url.PathEscape(secret),
		strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"), marked.String(), html.EscapeString(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}
