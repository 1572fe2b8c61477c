package bugzilla

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// errWhoIsIt says that the tracker has no way to tell who a caller is.
var errWhoIsIt = errors.New("the tracker does not tell whose credential this is")

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

// Groups asks the tracker, with the caller's own credential, for the names of
// the caller's groups, sorted. A stock tracker can be asked only about a login
// or the user of a token, since it has no /rest/whoami; for an API key alone it
// fails there, and then the caller shares with nobody.
func (c *Client) Groups(ctx context.Context, caller upstream.Caller) ([]string, error) {
	call, err := planAccount(c.Dialect(ctx), caller)
	if err != nil {
		return nil, err
	}
	document, err := c.loaded(ctx, caller, call, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the caller's groups: %w", err)
	}
	defer func() { _ = document.Close() }()
	text, err := document.Load(c.split)
	if err != nil {
		return nil, err
	}
	var answer struct {
		account
		Users []account `json:"users"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read the caller's groups: %w", err)
	}
	if len(answer.Users) == 1 {
		answer.account = answer.Users[0]
	}
	if answer.Name == "" || answer.Groups == nil {
		return nil, errWhoIsIt
	}
	return groupNames(answer.account), nil
}

func groupNames(of account) []string {
	names := make([]string, 0, len(of.Groups))
	for _, group := range of.Groups {
		names = append(names, string(group))
	}
	slices.Sort(names)
	return names
}

// tokenUser is the user that a token is for. What has no number of a user or no
// secret is no token for a tracker, which then looks at the next form of proof
// (wire-facts.md section 1, Credentials).
func tokenUser(token string) (id string, ok bool) {
	id, secret, _ := strings.Cut(token, "-")
	_, err := strconv.ParseUint(id, 10, 63)
	return id, err == nil && secret != ""
}

// planAccount plans the question for the caller's own account, the one whose
// proof the tracker looks at first: asked about any other, it would tell of
// groups that the answers do not come from. A tracker that can say by itself who
// is asking is never asked about a name.
func planAccount(dialect mapping.Dialect, caller upstream.Caller) (Call, error) {
	call := Call{Operation: mapping.OpFlagTypes, Method: http.MethodGet, Query: url.Values{}}
	have := caller.Credentials
	user, isToken := tokenUser(have.Token)
	var err error
	switch {
	case dialect.HeaderCredentials:
		call.Path, err = resource(dialect, "whoami")
		return call, err
	case have.Login != "" && have.Password != "":
		call.Query.Set("names", have.Login)
	case isToken:
		call.Query.Set("ids", user)
	default:
		return Call{}, errWhoIsIt
	}
	call.Query.Set("include_fields", "name,groups")
	call.Path, err = resource(dialect, "user")
	return call, err
}
