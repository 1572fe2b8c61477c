package writes

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

// Render gives the request that a tracker would be sent for a call as a JSON object, or a *mapping.Error where the tracker has no form for
// it.
type Render = func(ctx context.Context, call upstream.Call) ([]byte, error)

// ComparePlans gives the differences in meaning between the requests that the reference and the candidate would be sent for a write, and
// whether their form differs. Of a *mapping.Error only reason and code are kept, since its message has names in it. Other
// errors are returned.
func ComparePlans(ctx context.Context, reference, candidate Render, call upstream.Call, rules compare.Rules) (differences []compare.Difference, otherForm bool, err error) {
	var requests, refused [2]jsontext.Value
	for i, render := range []Render{reference, candidate} {
		request, err := render(ctx, call)
		if failed, ok := errors.AsType[*mapping.Error](err); ok {
			refusal := mapping.Members{{Name: "code", Value: jsontext.Value(strconv.Itoa(failed.Code))}}
			refusal.SetText("refused", string(failed.Reason))
			refused[i] = refusal.AppendJSON(nil)
		} else if err != nil {
			return nil, false, err
		}
		requests[i] = request
	}
	switch {
	case refused[0] != nil && refused[1] != nil:
		return nil, false, nil
	case refused[0] != nil || refused[1] != nil:
		return []compare.Difference{{
			Class: compare.ClassPlan, Path: compare.PathRefused, Pointer: compare.PathRefused, Want: refused[0], Have: refused[1],
		}}, false, nil
	}
	return compare.Plans(call.Operation, meaning(requests[0]), meaning(requests[1]), rules), string(requests[0]) != string(requests[1]), nil
}

// meaning gives what a planned request means, in one form for all dialects, so
// that two dialects which spell the same write differently make no finding. Method
// and root of the path are form, and so is the selection in the path where the body
// has one, which trackers take instead (tracker-behaviour.md sections 4, 6 and 7). In the
// body it is the notation of booleans, numbers, selections and scopes, the order of
// members, and null for what is not sent. A plan that is not an object stays as it is.
func meaning(plan jsontext.Value) jsontext.Value {
	var parts struct {
		Path        string
		Query, Body json.RawMessage
	}
	if json.Unmarshal(plan, &parts) != nil {
		return plan
	}
	var selection struct{ IDs, Names json.RawMessage }
	_ = json.Unmarshal(parts.Body, &selection) // no selection otherwise
	result := map[string]any{"resource": resource(parts.Path, len(selection.IDs)+len(selection.Names) > 0)}
	if query := string(parts.Query); query != "" && query != "null" && query != "{}" && query != `""` {
		result["query"] = parts.Query
	}
	if parts.Body != nil {
		result["body"] = bodyMeaning(parts.Body)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return plan
	}
	return text
}

// resource names the resource below the tracker's root, with what it selects.
func resource(path string, selected bool) string {
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

// bodyMeaning brings the members that the interface has to one notation. Others stay
// as they are.
func bodyMeaning(body json.RawMessage) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	result := map[string]any{}
	for name, value := range members {
		if string(value) != "null" {
			result[name] = memberMeaning(name, value)
		}
	}
	return result
}

func memberMeaning(name string, value json.RawMessage) any {
	switch name {
	case "ids", "names":
		if texts, ok := textsOf(value); ok {
			return texts
		}
	case "inclusions", "exclusions": // trackers keep them as sets of products and components
		if scopes, failed := mapping.ParseScopes(name, jsontext.Value(value)); failed == nil {
			return pairsOf(scopes)
		}
	case "is_active", "is_requestable", "is_specifically_requestable", "is_requesteeble", "is_multiplicable",
		"is_private", "is_patch", "is_obsolete", "new":
		if is, ok := mapping.ParseBool(jsontext.Value(value)); ok {
			return is
		}
	case "sortkey", "type_id", "id":
		if text, ok := mapping.Text(jsontext.Value(value)); ok {
			return text
		}
	case "flags":
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil {
			result := make([]any, len(list))
			for i, flag := range list {
				result[i] = bodyMeaning(flag)
			}
			return result
		}
	}
	return value
}

// textsOf sorts an array of scalars, or makes one of a single scalar.
func textsOf(value json.RawMessage) ([]string, bool) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	}
	texts := make([]string, len(list))
	for i, element := range list {
		var ok bool
		if texts[i], ok = mapping.Text(jsontext.Value(element)); !ok {
			return nil, false
		}
	}
	slices.Sort(texts)
	return texts, true
}

// pairsOf lists products with their components.
func pairsOf(scopes mapping.Scopes) [][]string {
	pairs := [][]string{}
	for _, scope := range scopes {
		if scope.Components == nil {
			pairs = append(pairs, []string{scope.Product})
		}
		for _, component := range scope.Components {
			pairs = append(pairs, []string{scope.Product, component})
		}
	}
	slices.SortFunc(pairs, slices.Compare)
	return pairs
}
