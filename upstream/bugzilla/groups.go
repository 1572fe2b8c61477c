package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// errUnknownAccount: the tracker does not tell whose credential this is.
var errUnknownAccount = errors.New("the tracker does not tell whose credential this is")

// account is a user as trackers describe one to that user. A stock tracker gives a group as an object with a name, and /rest/whoami of
// the dialect bmo by its name, as the reference tracker does.
type account struct {
	Name   string           `json:"name"`
	Groups []jsontext.Value `json:"groups"`
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
	names := []string{}
	for _, group := range result.Groups {
		if members, err := mapping.ParseMembers(group); err == nil {
			group = members.Get("name")
		}
		name, _ := mapping.Text(group)
		names = append(names, name)
	}
	return names, nil
}

// planAccount plans the request for the caller's own account, the one whose
// credential the tracker looks at first: the groups of any other one would not be those
// that responses depend on. A tracker that has /whoami is never asked about a name.
func planAccount(dialect mapping.Dialect, caller upstream.Caller) (Call, error) {
	login := caller.Credentials.Login
	switch {
	case dialect.HeaderCredentials:
		return planRead(dialect, mapping.OpFlagTypes, []string{"whoami"}, nil, "", nil)
	case login == "" || caller.Credentials.Password == "":
		return Call{}, errUnknownAccount
	}
	query := url.Values{"names": {login}, "include_fields": {"name,groups"}}
	return planRead(dialect, mapping.OpFlagTypes, []string{"user"}, query, "User.get",
		lists(url.Values{"names": {login}, "include_fields": {"name", "groups"}}))
}
