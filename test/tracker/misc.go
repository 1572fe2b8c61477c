package tracker

import (
	"maps"
	"slices"
	"strings"
)

var (
	opLogin      = operation{name: "login", write: true, open: true, do: (*call).logIn}
	opLogout     = operation{name: "logout", write: true, open: true, do: (*call).logOut}
	opValidLogin = operation{name: "valid_login", open: true, do: (*call).validLogin}
	opWhoAmI     = operation{name: "whoami", do: (*call).whoAmI}
	opVersion    = operation{name: "version", open: true, do: (*call).version}
	opExtensions = operation{name: "extensions", do: func(*call) (any, error) {
		return object{"extensions": object{}}, nil
	}}
	opParameters = operation{name: "parameters", open: true, do: (*call).parameters}
	opTime       = operation{name: "time", do: (*call).time}
	opUsers      = operation{name: "user.get", do: (*call).userList}
	opFields     = operation{name: "field.get", do: (*call).fields}
)

func (c *call) version() (any, error) {
	return object{"version": c.server.options.Version}, nil
}

func (c *call) parameters() (any, error) {
	maximum := c.server.options.Params.MaxAttachmentSize
	o := object{"maintainer": "maintainer@example.com", "requirelogin": "0"}
	if c.server.has(QuirkRequireLogin) {
		o["requirelogin"] = "1"
	}
	if c.user != nil {
		o["maxattachmentsize"], o["urlbase"], o["usevisibilitygroups"] = text(int64(maximum)), "", "0"
	}
	return object{"parameters": o}, nil
}

func (c *call) time() (any, error) {
	now := stamp(c.tx.now)
	return object{"db_time": now, "web_time": now, "web_time_utc": now, "tz_name": "UTC", "tz_short_name": "UTC", "tz_offset": "+0000"}, nil
}

func (c *call) whoAmI() (any, error) {
	if err := c.needLogin(); err != nil {
		return nil, err
	}
	o := c.userDetail(c.user.id)
	delete(o, "email")
	o["groups"] = c.groupNames(c.user.groups)
	return o, nil
}

// userList finds users by login, id, or part of either; who is not logged in sees less.
func (c *call) userList() (any, error) {
	var found []*user
	given := false
	for _, name := range []string{"names", "ids", "match"} {
		v, ok := c.params[name]
		if !ok {
			continue
		}
		given = true
		if c.user == nil && name != "names" {
			return nil, fail(505, "looking users up by %s needs a login", name)
		}
		for _, w := range words(v, false) {
			some := slices.DeleteFunc(c.tx.users.all(), func(u *user) bool { return !userMatches(u, name, w) })
			if len(some) == 0 && name != "match" {
				return nil, errNoObject("user", strings.TrimSuffix(name, "s"), w)
			}
			found = append(found, some...)
		}
	}
	if !given {
		return nil, fail(codeParamRequired, "reading users needs one of the parameters ids, names and match")
	}
	return object{"users": listOf(found, c.userObject)}, nil
}

func userMatches(u *user, by, what string) bool {
	n, numeric := natural(what)
	switch by {
	case "ids":
		return numeric && u.id == n
	case "match":
		return strings.Contains(strings.ToLower(u.login+" "+u.realName), strings.ToLower(what))
	}
	return strings.EqualFold(u.login, what) || numeric && u.id == n
}

func (c *call) userObject(u *user) object {
	o := object{"id": u.id, "name": c.email(u.id), "real_name": u.realName}
	if c.user == nil {
		return o
	}
	o["email"], o["can_login"] = u.login, u.disabledText == ""
	if c.user.id == u.id || c.tx.memberNamed(c.user, editUsersGroup) {
		groups := listOf(u.groups, func(id int) object {
			g := c.tx.groups.get(id)
			return object{"id": g.id, "name": g.name, "description": g.description}
		})
		o["groups"], o["saved_searches"], o["saved_reports"] = groups, []any{}, []any{}
	}
	return o
}

// fields describes the few fields of bugs that clients ask about before they start.
func (c *call) fields() (any, error) {
	values := map[string][]string{
		"bug_status": statuses(), "resolution": {"", "FIXED", "INVALID", "WONTFIX", "DUPLICATE", "WORKSFORME"},
		"priority": {"Highest", "High", "Normal", "Low", "Lowest", "---"}, "bug_severity": {"blocker", "critical", "major", "normal", "minor", "trivial", "enhancement"},
		"rep_platform": {"All", "PC", "Other"}, "op_sys": {"All", "Linux", "Windows", "macOS", "Other"}, "short_desc": nil, "product": nil, "component": nil, "version": nil,
	}
	for _, p := range c.visibleProducts() {
		values["product"] = append(values["product"], p.name)
	}
	names := slices.Sorted(maps.Keys(values))
	if v, ok := c.params["names"]; ok {
		names = words(v, false)
	}
	list := []any{}
	for i, name := range names {
		choices, ok := values[name]
		if !ok {
			return nil, errNoObject("field", "name", name)
		}
		list = append(list, fieldObject(i+1, name, choices))
	}
	return object{"fields": list}, nil
}

func fieldObject(id int, name string, choices []string) object {
	values := []any{}
	for i, v := range choices {
		values = append(values, object{"name": v, "sort_key": (i + 1) * 100, "sortkey": (i + 1) * 100, "is_active": true, "visibility_values": []any{}})
	}
	kind := 1
	if len(values) > 0 {
		kind = 2
	}
	return object{"id": id, "name": name, "display_name": strings.ReplaceAll(name, "_", " "), "type": kind, "is_custom": false,
		"is_mandatory": name == "short_desc" || name == "product" || name == "component", "is_on_bug_entry": true, "visibility_field": nil,
		"visibility_values": []any{}, "value_field": nil, "values": values}
}
