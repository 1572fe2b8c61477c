package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// errUnknownAccount: the tracker does not tell whose credential this is.
var errUnknownAccount = errors.New("the tracker does not tell whose credential this is")

// account is a user as trackers describe one to that user.
type account struct {
	Name   string     `json:"name"`
	Groups []groupRef `json:"groups"`
}

// groupRef is the name of a group. A stock tracker gives it as a member of an object, and /rest/whoami of the dialect bmo by
// itself, as the reference tracker does.
type groupRef string

// UnmarshalJSON implements json.Unmarshaler.
func (g *groupRef) UnmarshalJSON(text []byte) error {
	if jsontext.Value(text).Kind() == '"' {
		return json.Unmarshal(text, (*string)(g))
	}
	var object struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(text, &object)
	*g = groupRef(object.Name)
	return err
}

// Groups requests from the tracker, with the caller's own credential, the names of
// the caller's groups. A stock tracker can be asked only about a login, since it
// has no /rest/whoami; for an API key alone it fails there, and then the caller
// shares with no other one. It is not for callers with a token, whose reads are never shared.
func (c *Client) Groups(ctx context.Context, caller upstream.Caller) ([]string, error) {
	call, err := planAccount(c.Dialect(ctx), caller)
	var result struct {
		account
		Users []account `json:"users"`
	}
	if err := c.fetch(ctx, caller, call, err, &result); err != nil {
		return nil, fmt.Errorf("read the caller's groups: %w", err)
	}
	if len(result.Users) == 1 {
		result.account = result.Users[0]
	}
	if result.Name == "" || result.Groups == nil {
		return nil, errUnknownAccount
	}
	names := make([]string, 0, len(result.Groups))
	for _, group := range result.Groups {
		names = append(names, string(group))
	}
	return names, nil
}

// rpcAccount is the request for an account by JSON-RPC.
func rpcAccount(query url.Values) Call {
	var params mapping.Members
	setTexts(&params, "names", query["names"])
	setTexts(&params, "include_fields", []string{"name", "groups"})
	return rpcRead(mapping.OpFlagTypes, "User.get", params)
}

// planAccount plans the request for the caller's own account, the one whose
// credential the tracker looks at first: the groups of any other one would not be those
// that responses depend on. A tracker that has /whoami is never asked about a name.
func planAccount(dialect mapping.Dialect, caller upstream.Caller) (Call, error) {
	call := Call{Operation: mapping.OpFlagTypes, Method: http.MethodGet, Query: url.Values{}}
	have := caller.Credentials
	var err error
	switch {
	case dialect.HeaderCredentials:
		call.Path, err = resource(dialect, "whoami")
		return call, err
	case have.Login != "" && have.Password != "":
		call.Query.Set("names", have.Login)
	default:
		return Call{}, errUnknownAccount
	}
	call.Query.Set("include_fields", "name,groups")
	call.long = longForm(dialect, func() Call { return rpcAccount(call.Query) })
	call.Path, err = resource(dialect, "user")
	return call, err
}
