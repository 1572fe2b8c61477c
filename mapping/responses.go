package mapping

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// InterfaceForm gives the response of an operation the forms and names that
// interface.md has for it, where those of real trackers differ (tracker-behaviour.md
// section 9): booleans of attachments, names of changed fields, and texts that
// are null. What it does not know stays as it is. It does not change its
// argument, which may hold placeholders of payloads.
func InterfaceForm(operation Operation, response jsontext.Value) jsontext.Value {
	switch operation {
	case OpBugAttachments, OpAttachment:
		return mapMember(mapMember(response, "bugs", eachValue(eachElement(interfaceAttachment))),
			"attachments", eachValue(interfaceAttachment))
	case OpUpdateFlagTypes:
		return mapMember(response, "flagtypes", eachElement(interfaceChange))
	case OpUpdateAttachments:
		return mapMember(response, "attachments", eachElement(interfaceChange))
	default:
		return response
	}
}

// transform makes one JSON value of another.
type transform func(jsontext.Value) jsontext.Value

// mapObject changes the members of an object. Any other value stays as it is.
func mapObject(value jsontext.Value, change func(Members)) jsontext.Value {
	if value.Kind() != '{' {
		return value
	}
	members := splitObject(value)
	change(members)
	return members.AppendJSON(nil)
}

// mapMember transforms one member of an object.
func mapMember(object jsontext.Value, name string, change transform) jsontext.Value {
	return mapObject(object, func(members Members) {
		if value := members.Get(name); value != nil {
			members.Set(name, change(value))
		}
	})
}

// eachValue transforms every member of an object.
func eachValue(change transform) transform {
	return func(object jsontext.Value) jsontext.Value {
		return mapObject(object, func(members Members) {
			for i := range members {
				members[i].Value = change(members[i].Value)
			}
		})
	}
}

// eachElement transforms every element of an array.
func eachElement(change transform) transform {
	return func(array jsontext.Value) jsontext.Value {
		if array.Kind() != '[' {
			return array
		}
		return arrayOf(items(array), func(dst []byte, item jsontext.Value) []byte { return append(dst, change(item)...) })
	}
}

// interfaceAttachment turns 0 and 1 into false and true (interface.md section 1.5).
func interfaceAttachment(attachment jsontext.Value) jsontext.Value {
	return mapObject(attachment, func(members Members) {
		for _, name := range []string{"is_private", "is_obsolete", "is_patch"} {
			value := members.Get(name)
			if is, ok := ParseBool(value); ok && value.Kind() == '0' {
				members.Set(name, jsontext.Value(strconv.FormatBool(is)))
			}
		}
	})
}

// interfaceChange renames changed fields to the parameters that change them,
// and turns null into an empty text (interface.md section 1.4).
func interfaceChange(record jsontext.Value) jsontext.Value {
	return mapMember(record, "changes", func(changes jsontext.Value) jsontext.Value {
		return mapObject(changes, func(members Members) {
			for i := range members {
				members[i].Name = cmp.Or(interfaceNames[members[i].Name], members[i].Name)
				members[i].Value = eachValue(emptyForNull)(members[i].Value)
			}
		})
	})
}

// interfaceNames are the parameters that change the fields which trackers name otherwise.
var interfaceNames = map[string]string{
	"is_requesteeble": "is_specifically_requestable", "grant_group_id": "grant_group", "request_group_id": "request_group",
}

func emptyForNull(value jsontext.Value) jsontext.Value {
	if value.Kind() == 'n' {
		return jsontext.Value(`""`)
	}
	return value
}

// Stabilize puts a flag type reply into one form, whatever order the tracker
// chose this time, and gives it a strong tag. Trackers order members at random,
// and inclusions too (tracker-behaviour.md section 2), so that their own tags change
// while nothing else does. The order of the flag types means something and stays.
func (d *Document) Stabilize() error {
	members, err := ParseMembers(d.text)
	if err != nil {
		return err
	}
	for _, target := range []string{"bug", "attachment"} {
		list := members.Get(target)
		if list.Kind() != '[' {
			return fmt.Errorf("the member %q is not an array", target)
		}
		members.Set(target, eachElement(stableType)(list))
	}
	text := jsontext.Value(members.AppendJSON(nil))
	if err := text.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(true)); err != nil {
		return fmt.Errorf("bring flag types into a stable order: %w", err)
	}
	if err := d.Replace(text); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	d.ETag = `"` + hex.EncodeToString(sum[:12]) + `"` // strong, RFC 9110 section 8.8.1
	return nil
}

// stableType sorts the component lists of a flag type.
func stableType(object jsontext.Value) jsontext.Value {
	return mapObject(object, func(members Members) {
		for i, member := range members {
			isList := member.Name == "inclusions" || member.Name == "exclusions"
			if isList && member.Value.Kind() == '[' {
				members[i].Value = sortedTexts(member.Value)
			}
		}
	})
}

// sortedTexts sorts an array of strings and leaves any other array alone.
func sortedTexts(array jsontext.Value) jsontext.Value {
	list := items(array)
	if slices.ContainsFunc(list, func(item jsontext.Value) bool { return item.Kind() != '"' }) {
		return array
	}
	slices.SortFunc(list, func(a, b jsontext.Value) int { return bytes.Compare(a, b) })
	return arrayOf(list, func(dst []byte, item jsontext.Value) []byte { return append(dst, item...) })
}
