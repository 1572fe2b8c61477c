package mapping

import "github.com/go-json-experiment/json/jsontext"

// InterfaceForm gives the answer of an operation the forms and names that
// interface.md has for it, where those of real trackers differ (wire-facts.md
// section 9): booleans of attachments, names of changed fields, and texts that
// are null. What it does not know stays as it is. It does not change its
// argument, which may hold placeholders of payloads.
func InterfaceForm(operation Operation, answer jsontext.Value) jsontext.Value {
	switch operation {
	case OpBugAttachments, OpAttachment:
		return mapMember(mapMember(answer, "bugs", eachValue(eachElement(interfaceAttachment))),
			"attachments", eachValue(interfaceAttachment))
	case OpUpdateFlagTypes:
		return mapMember(answer, "flagtypes", eachElement(interfaceChange))
	case OpUpdateAttachments:
		return mapMember(answer, "attachments", eachElement(interfaceChange))
	default:
		return answer
	}
}

// transform makes one JSON value of another.
type transform func(jsontext.Value) jsontext.Value

// mapMember transforms one member of an object.
func mapMember(object jsontext.Value, name string, change transform) jsontext.Value {
	if object.Kind() != '{' {
		return object
	}
	members := splitObject(object)
	if value := members.Get(name); value != nil {
		members.Set(name, change(value))
	}
	return members.AppendJSON(nil)
}

// eachValue transforms every member of an object.
func eachValue(change transform) transform {
	return func(object jsontext.Value) jsontext.Value {
		if object.Kind() != '{' {
			return object
		}
		members := splitObject(object)
		for i := range members {
			members[i].Value = change(members[i].Value)
		}
		return members.AppendJSON(nil)
	}
}

// eachElement transforms every element of an array.
func eachElement(change transform) transform {
	return func(array jsontext.Value) jsontext.Value {
		if array.Kind() != '[' {
			return array
		}
		list := []byte{'['}
		eachItem(array, func(item jsontext.Value) {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, change(item)...)
		})
		return append(list, ']')
	}
}

// interfaceAttachment turns 0 and 1 into false and true (interface.md, Attachment).
func interfaceAttachment(attachment jsontext.Value) jsontext.Value {
	if attachment.Kind() != '{' {
		return attachment
	}
	members := splitObject(attachment)
	for _, name := range []string{"is_private", "is_obsolete", "is_patch"} {
		value := members.Get(name)
		if is, ok := ParseBool(value); ok && value.Kind() == '0' {
			members.Set(name, boolLiteral(is))
		}
	}
	return members.AppendJSON(nil)
}

func boolLiteral(is bool) jsontext.Value {
	if is {
		return jsontext.Value("true")
	}
	return jsontext.Value("false")
}

// interfaceChange renames changed fields to the parameters that change them,
// and turns null into an empty text (interface.md, Flag type change record).
func interfaceChange(record jsontext.Value) jsontext.Value {
	return mapMember(record, "changes", func(changes jsontext.Value) jsontext.Value {
		if changes.Kind() != '{' {
			return changes
		}
		members := splitObject(changes)
		for i := range members {
			members[i].Name = interfaceFieldName(members[i].Name)
			members[i].Value = eachValue(emptyForNull)(members[i].Value)
		}
		return members.AppendJSON(nil)
	})
}

func interfaceFieldName(name string) string {
	switch name {
	case "is_requesteeble":
		return "is_specifically_requestable"
	case "grant_group_id":
		return "grant_group"
	case "request_group_id":
		return "request_group"
	default:
		return name
	}
}

func emptyForNull(value jsontext.Value) jsontext.Value {
	if value.Kind() == 'n' {
		return jsontext.Value(`""`)
	}
	return value
}
