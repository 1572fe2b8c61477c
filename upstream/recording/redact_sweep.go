package recording

import (
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// cleaner takes the credentials of one exchange out of texts in which they are not expected.
type cleaner struct {
	*sheet
	replacer *strings.Replacer
}

// text cleans what stands between placeholders.
func (c *cleaner) text(text string) string {
	var out strings.Builder
	last := 0
	clean := func(piece string) {
		piece = c.replacer.Replace(piece)
		if strings.Contains(piece, "@") || strings.Contains(piece, "%40") {
			piece = address.ReplaceAllStringFunc(piece, c.address)
		}
		out.WriteString(piece)
	}
	for _, at := range either.FindAllStringIndex(text, -1) {
		clean(text[last:at[0]])
		out.WriteString(text[at[0]:at[1]])
		last = at[1]
	}
	clean(text[last:])
	return out.String()
}

// line cleans a text, and gives it up where a credential stays in it in a spelling that nobody expects.
func (c *cleaner) line(text string) string {
	if text = c.text(text); c.holds(text) {
		c.spoilt(unreadable)
		return hiddenText
	}
	return text
}

// target cleans path and query.
func (c *cleaner) target(target string) string {
	if target = c.text(target); !c.holds(target) {
		return target
	}
	c.spoilt(unreadable)
	path, _, found := strings.Cut(target, "?")
	if !found || c.holds(path) {
		return "/" + hiddenText
	}
	return path + "?" + hiddenText
}

func (c *cleaner) headers(headers map[string]string) {
	for name, value := range headers {
		headers[name] = c.line(value)
	}
}

// body cleans a body. In JSON each string is looked at for what it means, and not for how it is written.
func (c *cleaner) body(body []byte) (clean []byte, ok bool) {
	if len(c.secrets) > 0 {
		if inner, isJSON := walkJSON(body, c.words); isJSON {
			body = inner
		}
	}
	text := c.text(string(body))
	if c.holds(text) {
		return nil, false
	}
	return append([]byte{}, text...), true
}

// words cleans one string of a JSON text, or a name.
func (c *cleaner) words(_ place, raw jsontext.Value) (text string, changed bool) {
	if raw.Kind() != '"' {
		return "", false
	}
	plain := unquoted(raw)
	text = c.text(plain)
	return text, text != plain && c.held(plain)
}

// held tells whether a text has one of the credentials in it as it is.
func (c *cleaner) held(text string) bool {
	for _, secret := range c.secrets {
		if len(secret) >= shortest && strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

// holds tells whether a credential is in a text when all escapes are taken off.
func (c *cleaner) holds(text string) bool {
	if len(c.secrets) == 0 {
		return false
	}
	text = either.ReplaceAllString(text, "\x00")
	once := bare(text)
	return c.held(text) || c.held(once) || c.held(strings.ReplaceAll(once, "+", " ")) || c.held(bare(once))
}

var backslash = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|["\\/])`)

// bare takes off the escapes of queries, of marked-up text and of JSON.
func bare(text string) string {
	if strings.Contains(text, `\`) {
		text = backslash.ReplaceAllStringFunc(text, func(escape string) string {
			if code, err := strconv.ParseUint(escape[2:], 16, 16); err == nil && escape[1] == 'u' {
				return string(rune(code))
			}
			return escape[1:2]
		})
	}
	return html.UnescapeString(unescaped(text))
}
