package canary

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// planMeaning gives what a planned request means, in one form for all dialects, so
// that two dialects which spell the same write differently make no finding. Method
// and root of the path are form, and so is the selection in the path where the body
// has one, which trackers take instead (wire-facts.md sections 4, 6 and 7). In the
// body it is the notation of booleans, numbers, selections and scopes, the order of
// members, and null for what is not sent. A plan that is no object stays as it is.
func planMeaning(plan jsontext.Value) jsontext.Value {
	members, err := mapping.ParseMembers(plan)
	if err != nil {
		return plan
	}
	var meaning mapping.Members
	body, err := mapping.ParseMembers(members.Get("body"))
	path, _ := mapping.Text(members.Get("path"))
	meaning.SetText("resource", planResource(path, len(body.Get("ids")) > 0 || len(body.Get("names")) > 0))
	if query := members.Get("query"); !isEmpty(query) {
		meaning.Set("query", query)
	}
	if body := members.Get("body"); err == nil {
		meaning.Set("body", bodyMeaning(body))
	} else if body != nil {
		meaning.Set("body", body)
	}
	return meaning.AppendJSON(nil)
}

// planResource names the resource below the tracker's root, with what it selects.
func planResource(path string, selected bool) string {
	var words []string
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if segment == "flag_types" {
			segment = "flag_type"
		}
		isResource := segment == "flag_type" || segment == "bug" || segment == "attachment"
		if isResource || len(words) > 0 && !selected {
			words = append(words, segment)
		}
	}
	return strings.Join(words, "/")
}

func isEmpty(value jsontext.Value) bool {
	text := strings.TrimSpace(string(value))
	return text == "" || text == "null" || text == "{}" || text == `""`
}

// bodyMeaning brings the members that the interface has to one notation. Others stay
// as they are.
func bodyMeaning(body jsontext.Value) jsontext.Value {
	members, err := mapping.ParseMembers(body)
	if err != nil {
		return body
	}
	var meaning mapping.Members
	for _, member := range members {
		if member.Value.Kind() != 'n' {
			meaning.Set(member.Name, memberMeaning(member.Name, member.Value))
		}
	}
	return meaning.AppendJSON(nil)
}

func memberMeaning(name string, value jsontext.Value) jsontext.Value {
	switch name {
	case "ids", "names":
		return sortedList(value)
	case "inclusions", "exclusions":
		return scopesMeaning(name, value)
	case "is_active", "is_requestable", "is_specifically_requestable", "is_requesteeble", "is_multiplicable",
		"is_private", "is_patch", "is_obsolete", "new":
		if is, ok := mapping.ParseBool(value); ok && is {
			return jsontext.Value("true")
		} else if ok {
			return jsontext.Value("false")
		}
	case "sortkey", "type_id", "id":
		if text, ok := mapping.Text(value); ok {
			return quoted(text)
		}
	case "flags":
		return eachBody(value)
	}
	return value
}

// sortedList sorts an array of scalars as texts, or makes one of a single scalar.
func sortedList(value jsontext.Value) jsontext.Value {
	var texts []string
	for _, element := range elements(value) {
		text, ok := mapping.Text(element)
		if !ok {
			return value
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	list := make([]jsontext.Value, len(texts))
	for i, text := range texts {
		list[i] = quoted(text)
	}
	return joined(list)
}

// scopesMeaning lists products with their components, which trackers keep as sets.
func scopesMeaning(name string, value jsontext.Value) jsontext.Value {
	scopes, failed := mapping.ParseScopes(name, value)
	if failed != nil {
		return value
	}
	var list []string
	for _, scope := range scopes {
		if scope.Components == nil {
			list = append(list, string(joined([]jsontext.Value{quoted(scope.Product)})))
		}
		for _, component := range scope.Components {
			list = append(list, string(joined([]jsontext.Value{quoted(scope.Product), quoted(component)})))
		}
	}
	slices.Sort(list)
	values := make([]jsontext.Value, len(list))
	for i, text := range list {
		values[i] = jsontext.Value(text)
	}
	return joined(values)
}

// eachBody brings the objects of an array to one notation.
func eachBody(value jsontext.Value) jsontext.Value {
	if value.Kind() != '[' {
		return value
	}
	list := elements(value)
	for i := range list {
		list[i] = bodyMeaning(list[i])
	}
	return joined(list)
}

// elements gives those of an array, or the value itself when it is none.
func elements(value jsontext.Value) []jsontext.Value {
	if value.Kind() != '[' {
		return []jsontext.Value{value}
	}
	var list []jsontext.Value
	decoder := jsontext.NewDecoder(strings.NewReader(string(value)))
	if _, err := decoder.ReadToken(); err != nil {
		return nil
	}
	for decoder.PeekKind() != ']' {
		element, err := decoder.ReadValue()
		if err != nil {
			return nil
		}
		list = append(list, element.Clone())
	}
	return list
}

func joined(list []jsontext.Value) jsontext.Value {
	text := []byte{'['}
	for i, value := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, value...)
	}
	return append(text, ']')
}

func quoted(text string) jsontext.Value {
	value, _ := jsontext.AppendQuote(nil, text) // what is no UTF-8 is replaced
	return value
}
