package mapping

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Members renders the request as a body that a tracker of the given dialect
// understands. It fails with an *Error when the dialect has no form for it.
func (r *FlagTypeCreate) Members(dialect Dialect) (Members, error) {
	m, err := r.FlagTypeFields.members(dialect)
	if err != nil {
		return nil, err
	}
	setText(&m, "target_type", r.TargetType)
	return append(m, r.Extra...), nil
}

// Members renders the request with the whole selection as ids and names, which
// replace whatever stands in the path (tracker-behaviour.md section 4, Selection).
func (r *FlagTypeUpdate) Members(dialect Dialect) (Members, error) {
	m, err := r.FlagTypeFields.members(dialect)
	if err != nil {
		return nil, err
	}
	if len(r.IDs) > 0 {
		m.Set("ids", intList(r.IDs))
	}
	if len(r.Names) > 0 {
		m.Set("names", arrayOf(r.Names, appendQuoted))
	}
	return append(m, r.Extra...), nil
}

func (r *FlagTypeFields) members(dialect Dialect) (Members, error) {
	var m Members
	setText(&m, "name", r.Name)
	setText(&m, "description", r.Description)
	if err := setScopes(&m, "inclusions", r.Inclusions, dialect); err != nil {
		return nil, err
	}
	if err := setScopes(&m, "exclusions", r.Exclusions, dialect); err != nil {
		return nil, err
	}
	setInt(&m, "sortkey", r.Sortkey)
	setBool(&m, "is_active", r.IsActive)
	setBool(&m, "is_requestable", r.IsRequestable)
	setBool(&m, "is_specifically_requestable", r.IsSpecificallyRequestable)
	setBool(&m, "is_multiplicable", r.IsMultiplicable)
	setText(&m, "cc_list", r.CCList)
	setText(&m, "grant_group", r.GrantGroup)
	setText(&m, "request_group", r.RequestGroup)
	return m, nil
}

// Members renders the request without its data, which the caller places with
// Join, and with all bugs in ids, which replace the path (tracker-behaviour.md section 6).
func (r *AttachmentCreate) Members() Members {
	var m Members
	m.Set("ids", bugList(r.Bugs))
	setText(&m, "file_name", r.FileName)
	setText(&m, "summary", r.Summary)
	setText(&m, "content_type", r.ContentType)
	setText(&m, "comment", r.Comment)
	setBool(&m, "is_patch", r.IsPatch)
	setBool(&m, "is_private", r.IsPrivate)
	setFlags(&m, r.Flags)
	return append(m, r.Extra...)
}

// Members renders the request with all attachments in ids, which replace the
// path (tracker-behaviour.md section 7).
func (r *AttachmentUpdate) Members() Members {
	var m Members
	m.Set("ids", intList(r.IDs))
	setText(&m, "file_name", r.FileName)
	setText(&m, "summary", r.Summary)
	setText(&m, "comment", r.Comment)
	setText(&m, "content_type", r.ContentType)
	setBool(&m, "is_patch", r.IsPatch)
	setBool(&m, "is_private", r.IsPrivate)
	setBool(&m, "is_obsolete", r.IsObsolete)
	setFlags(&m, r.Flags)
	return append(m, r.Extra...)
}

func setText(m *Members, name string, text *string) {
	if text != nil {
		m.SetText(name, *text)
	}
}

func setInt[T int | int64](m *Members, name string, number *T) {
	if number != nil {
		m.Set(name, jsontext.Value(strconv.FormatInt(int64(*number), 10)))
	}
}

// setBool sends 1 and 0, the one form that every tracker reads alike.
func setBool(m *Members, name string, is *bool) {
	if is == nil {
		return
	}
	value := jsontext.Value("0")
	if *is {
		value = jsontext.Value("1")
	}
	m.Set(name, value)
}

// setScopes refuses components of a product that a 5.x tracker cannot be told: it silently drops members whose name has characters
// other than letters, digits, and . _ - (tracker-behaviour.md section 1, Request bodies).
func setScopes(m *Members, name string, scopes *Scopes, dialect Dialect) error {
	if scopes == nil {
		return nil
	}
	for _, scope := range *scopes {
		if dialect.DropsOddMembers && len(scope.Components) > 0 && !isMemberName(scope.Product) {
			return Inexpressible("The tracker has no form for single components of product %q in %s.", scope.Product, name)
		}
	}
	m.Set(name, scopes.array())
	return nil
}

func setFlags(m *Members, flags []FlagChange) {
	if flags != nil {
		m.Set("flags", arrayOf(flags, func(dst []byte, flag FlagChange) []byte { return flag.members().AppendJSON(dst) }))
	}
}

func intList(ids []int64) jsontext.Value {
	return arrayOf(ids, func(dst []byte, id int64) []byte { return strconv.AppendInt(dst, id, 10) })
}

// bugList writes numbers as numbers and aliases as strings.
func bugList(bugs []string) jsontext.Value {
	return arrayOf(bugs, func(dst []byte, bug string) []byte {
		if id, ok := parseID(bug); ok {
			return strconv.AppendInt(dst, id, 10)
		}
		return appendQuoted(dst, bug)
	})
}
