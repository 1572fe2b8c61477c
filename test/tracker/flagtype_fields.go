package tracker

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of flag type fields (tracker-behaviour.md section 3).
const (
	maxTypeName = 50
	maxCCList   = 200
	maxSortkey  = 32767
)

// flagTypeFields are the fields of flag types by their names in requests, in the order in which they are set.
func flagTypeFields() []string {
	return []string{"cc_list", "description", "grant_group", "is_active", "is_multiplicable", "is_requestable",
		"is_specifically_requestable", "name", "request_group", "sortkey"}
}

// setTypeField puts one checked value into a flag type.
func (c *call) setTypeField(f *flagType, name string, v any) (err error) {
	switch name {
	case "cc_list":
		f.ccList, err = checkCCList(v)
	case "description":
		f.description, err = checkTypeDescription(v)
	case "grant_group":
		f.grantGroup, err = c.checkGroup(v)
	case "is_active":
		f.active = truth(v)
	case "is_multiplicable":
		f.multiplicable = truth(v)
	case "is_requestable":
		f.requestable = truth(v)
	case "is_specifically_requestable":
		f.requesteeble = truth(v)
	case "name":
		f.name, err = checkTypeName(v)
	case "request_group":
		f.requestGroup, err = c.checkGroup(v)
	case "sortkey":
		f.sortkey, err = checkSortkey(v)
	case "target_type":
		f.target, err = checkTarget(v)
	}
	return err
}

func checkTypeName(v any) (string, error) {
	name := trim(text(v))
	if !truth(name) || utf8.RuneCountInString(name) > maxTypeName ||
		strings.IndexFunc(name, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) >= 0 {
		return "", fail(codeTypeName, "'%s' is no name for a flag type: 1 to %d characters without blanks and commas", name, maxTypeName)
	}
	return name, nil
}

func checkTypeDescription(v any) (string, error) {
	description := trim(text(v))
	if !truth(description) {
		return "", fail(codeTypeDescription, "a flag type needs a description")
	}
	return description, nil
}

func checkSortkey(v any) (int, error) {
	if n, ok := natural(text(v)); ok && n <= maxSortkey {
		return n, nil
	}
	return 0, fail(codeSortkey, "'%s' is no sort key: an integer from 0 to %d", text(v), maxSortkey)
}

var (
	addressSeparator = regexp.MustCompile(`[,\s]+`)
	plainAddress     = regexp.MustCompile(`^[\w.+=-]+@[\w.-]+\.[\w-]+$`)
)

// checkCCList takes a string of addresses; null does not come here on create and is an internal error on update.
func checkCCList(v any) (string, error) {
	if v == nil {
		return "", internal("the CC list is undefined")
	}
	list := text(v)
	if utf8.RuneCountInString(list) > maxCCList {
		return "", fail(codeCCList, "the CC list is longer than %d characters: %s", maxCCList, list)
	}
	for _, address := range splitAddresses(list) {
		if !plainAddress.MatchString(address) {
			return "", fail(codeBadEmail, "the address '%s' is not well formed", address)
		}
	}
	return list, nil
}

// splitAddresses keeps a leading empty part, so that a list must not start with a separator, and drops trailing ones.
func splitAddresses(list string) []string {
	parts := addressSeparator.Split(list, -1)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// checkGroup finds a group by name; what is false is no group.
func (c *call) checkGroup(v any) (int, error) {
	if !truth(v) {
		return 0, nil
	}
	name := trim(text(v))
	if name == "" {
		return 0, fail(codeParamRequired, "a group has to be named")
	}
	g := c.tx.groupNamed(name)
	if g == nil {
		return 0, errNoObject("group", "name", name)
	}
	return g.id, nil
}
