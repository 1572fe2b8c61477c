package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// credentialNames are the parameters that carry each kind of credential, the stronger name first
// (wire-facts.md, section 1, Credentials).
var credentialNames = []credentialKind{
	{[]string{"api_key", "Bugzilla_api_key"}, strings.TrimSpace, func(c *upstream.Credentials) *string { return &c.APIKey }},
	{[]string{"login", "Bugzilla_login"}, strings.TrimSpace, func(c *upstream.Credentials) *string { return &c.Login }},
	{[]string{"password", "Bugzilla_password"}, asWritten, func(c *upstream.Credentials) *string { return &c.Password }},
	{[]string{"token", "Bugzilla_token"}, strings.TrimSpace, func(c *upstream.Credentials) *string { return &c.Token }},
}

// credentialKind is one kind of credential, what of a parameter's text it is, and where it is kept.
type credentialKind struct {
	names []string
	text  func(string) string
	field func(*upstream.Credentials) *string
}

// asWritten is the text of a password, to which blanks around it belong.
func asWritten(text string) string { return text }

// isCredential tells whether a parameter or member of that name is a credential.
func isCredential(name string) bool {
	for _, kind := range credentialNames {
		if name == kind.names[0] || name == kind.names[1] {
			return true
		}
	}
	return false
}

// credentials gathers what the client showed. The query beats the body, the body beats the headers; what is in the body is
// taken out of it. members is nil for reads.
func credentials(header http.Header, query parameters, members *mapping.Members) (upstream.Credentials, error) {
	var found upstream.Credentials
	passwordToo := passwordGiven(query, members)
	for _, kind := range credentialNames {
		value, err := kind.fromQuery(query, members != nil)
		if err != nil {
			return found, err
		}
		inBody, err := kind.fromBody(members)
		if err != nil {
			return found, err
		}
		*kind.field(&found) = firstOf(value, inBody)
	}
	if found.Login != "" && found.Password == "" && passwordToo {
		return found, mapping.Refuse(mapping.CodeBadLogin, "The login name or the password is wrong.")
	}
	addHeaders(&found, header)
	return found, nil
}

// passwordGiven tells whether there is a password, were it an empty one: a tracker takes that for a wrong password, and a login
// without any for nobody.
func passwordGiven(query parameters, members *mapping.Members) bool {
	isPassword := func(name string) bool { return name == "password" || name == "Bugzilla_password" }
	if slices.ContainsFunc(query, func(each parameter) bool { return isPassword(each.name) }) {
		return true
	}
	return members != nil && slices.ContainsFunc(*members, func(each mapping.Member) bool {
		return isPassword(each.Name) && each.Value.Kind() != 'n'
	})
}

// fromQuery finds a credential in the query. Given twice it is refused on reads, and the first counts on writes.
func (k credentialKind) fromQuery(query parameters, write bool) (string, error) {
	for _, name := range k.names {
		values := query.all(name)
		if len(values) > 1 && !write {
			return "", badCredential(name)
		}
		if len(values) > 0 && k.text(values[0]) != "" {
			return k.text(values[0]), nil
		}
	}
	return "", nil
}

// fromBody takes a credential out of the body, under each of its names.
func (k credentialKind) fromBody(members *mapping.Members) (string, error) {
	if members == nil {
		return "", nil
	}
	found := ""
	for _, name := range k.names {
		value := members.Take(name)
		text, ok := scalar(value)
		if !ok {
			return "", badCredential(name)
		}
		found = firstOf(found, k.text(text))
	}
	return found, nil
}

// scalar gives the text of a JSON string or number, and nothing for null or an absent member.
func scalar(value jsontext.Value) (text string, ok bool) {
	if value == nil {
		return "", true
	}
	switch value.Kind() {
	case '"':
		plain, err := jsontext.AppendUnquote(nil, value)
		return string(plain), err == nil
	case '0':
		return string(value), true
	case 'n':
		return "", true
	default:
		return "", false
	}
}

func badCredential(name string) *mapping.Error {
	return mapping.Refuse(mapping.CodeBadKey, "The parameter %q must be given once, as a string.", name)
}

// addHeaders adds what came in headers where neither query nor body said anything of the kind.
func addHeaders(found *upstream.Credentials, header http.Header) {
	found.Authorization = headerText(header, "Authorization")
	found.Cookies = strings.Join(header.Values("Cookie"), "; ")
	found.APIKey = firstOf(found.APIKey, headerText(header, "X-Bugzilla-Api-Key"))
	found.KeyTwice = found.APIKey != "" && found.APIKey == found.Bearer()
	found.APIKey = firstOf(found.APIKey, found.Bearer())
	found.Token = firstOf(found.Token, headerText(header, "X-Bugzilla-Token"))
	if found.Login == "" && found.Password == "" {
		found.Login = headerText(header, "X-Bugzilla-Login")
		found.Password = get(header, "X-Bugzilla-Password")
	}
}

func headerText(header http.Header, name string) string { return strings.TrimSpace(get(header, name)) }

// firstOf gives the first text that is not empty.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
