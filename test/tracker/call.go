package tracker

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// call is one operation being executed for a user.
type call struct {
	server      *Server
	tx          *tx
	request     *http.Request
	user        *user
	params      object
	credentials object
	// cookies are sent with the answer.
	cookies []string
	// written are the ids that a write touched, for the journal.
	written []int
}

// operation is something that can be called, by REST or by one of the remote procedure calls.
type operation struct {
	name    string
	success int // the status; 0 means 200
	// write operations need a login.
	write bool
	// open operations need no login, whatever they do and whatever the installation requires.
	open bool
	// rate operations are those whose anonymous calls the rate limit counts.
	rate bool
	do   func(*call) (any, error)
}

// perform executes an operation in one transaction: credentials first, then the operation.
func (s *Server) perform(r *http.Request, op *operation, params object) outcome {
	if !s.mojolicious() {
		dropOddNames(params)
	}
	c := &call{server: s, request: r, params: params}
	o := outcome{success: op.success}
	o.err = s.transact(op, func(t *tx) (err error) {
		c.tx = t
		if err := c.authenticate(); err != nil {
			return err
		}
		if c.user == nil && op.rate {
			if err := c.limitRate(op.name, s.options.RateLimit); err != nil {
				return err
			}
		}
		if !op.open && (op.write || s.has(QuirkRequireLogin)) {
			if err := c.needLogin(); err != nil {
				return err
			}
		}
		if o.result, err = op.do(c); err == nil && op.write {
			c.record(op)
		}
		return err
	})
	o.anonymous, o.cookies = c.user == nil, c.cookies
	if o.err == nil {
		o.result = s.distort(op, o.result)
	}
	return o
}

// record writes an executed write into the journal, as part of the transaction.
func (c *call) record(op *operation) {
	if op.open {
		return
	}
	e := JournalEntry{Operation: op.name, Time: c.tx.now, IDs: slices.Clone(c.written), RequestID: c.request.Header.Get("X-Request-Id")}
	if c.user != nil {
		e.User = c.user.login
	}
	c.server.journal.add(e)
}

// email is an address as the caller may see it.
func (c *call) email(id int) string {
	u := c.tx.users.get(id)
	if u == nil {
		return ""
	}
	if c.user == nil && c.server.has(QuirkEmailFilter) {
		name, _, _ := strings.Cut(u.login, "@")
		return name
	}
	return u.login
}

// insidersGroup is the group that sees private attachments.
const insidersGroup = "insiders"

func (c *call) insider(u *user) bool {
	return !c.server.options.Params.NoInsiderGroup && c.tx.memberNamed(u, insidersGroup)
}

// wants tells whether a field of an answer is asked for by include_fields and exclude_fields (tracker-behaviour.md section 5, Filters).
func (c *call) wants(name string) bool {
	include, includeTypes := fieldSet(c.params["include_fields"])
	exclude, excludeTypes := fieldSet(c.params["exclude_fields"])
	if len(include) == 0 && len(includeTypes) == 0 {
		includeTypes = []string{"default"}
	}
	switch {
	case slices.Contains(exclude, name):
		return false
	case slices.Contains(include, name):
		return true
	case slices.Contains(excludeTypes, "all"):
		return false
	case slices.Contains(includeTypes, "all"):
		return true
	case slices.Contains(excludeTypes, "default"):
		return false
	case slices.Contains(includeTypes, "default"):
		return true
	}
	return slices.ContainsFunc(include, func(s string) bool { return len(s) > len(name) && s[:len(name)+1] == name+"." })
}

// filter leaves out the members that are not asked for. The prefix is the path of the object in the response.
func (c *call) filter(prefix string, o object) object {
	include, _ := fieldSet(c.params["include_fields"])
	if prefix != "" && slices.Contains(include, strings.TrimSuffix(prefix, ".")) {
		return o
	}
	maps.DeleteFunc(o, func(name string, _ any) bool { return !c.wants(prefix + name) })
	return o
}

// fieldSet separates names of fields from names of types of fields, which begin with an underscore.
func fieldSet(v any) (names, types []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if s := text(e); len(s) > 0 && s[0] == '_' {
			types = append(types, s[1:])
		} else {
			names = append(names, s)
		}
	}
	return names, types
}
