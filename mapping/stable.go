package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Stabilize puts a flag type answer into one form, whatever order the tracker
// chose this time, and gives it a strong tag. Trackers order members at random,
// and inclusions too (wire-facts.md section 2), so that their own tags change
// while nothing else does. The order of the flag types means something and stays.
func (r FlagTypes) Stabilize() error {
	members, err := ParseMembers(r.text)
	if err != nil {
		return err
	}
	for _, target := range []string{"bug", "attachment"} {
		list := members.Get(target)
		if list.Kind() != '[' {
			return fmt.Errorf("the member %q is not an array", target)
		}
		members.Set(target, stableTypes(list))
	}
	text := jsontext.Value(members.AppendJSON(nil))
	if err := text.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(true)); err != nil {
		return fmt.Errorf("bring flag types into a stable order: %w", err)
	}
	if err := r.Replace(text); err != nil {
		return err
	}
	r.ETag = tagOf(text)
	return nil
}

// tagOf is a strong entity tag (RFC 9110 section 8.8.1) of a text.
func tagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// stableTypes sorts the component lists of every flag type in an array.
func stableTypes(array jsontext.Value) jsontext.Value {
	list := []byte{'['}
	eachItem(array, func(item jsontext.Value) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		if item.Kind() == '{' {
			list = stableType(item).AppendJSON(list)
		} else {
			list = append(list, item...)
		}
	})
	return append(list, ']')
}

func stableType(object jsontext.Value) Members {
	members := splitObject(object)
	for i, member := range members {
		isList := member.Name == "inclusions" || member.Name == "exclusions"
		if isList && member.Value.Kind() == '[' {
			members[i].Value = sortedTexts(member.Value)
		}
	}
	return members
}

// sortedTexts sorts an array of strings and leaves any other array alone.
func sortedTexts(array jsontext.Value) jsontext.Value {
	var items []string
	plain := true
	eachItem(array, func(item jsontext.Value) {
		plain = plain && item.Kind() == '"'
		items = append(items, string(item))
	})
	if !plain {
		return array
	}
	slices.Sort(items)
	return jsontext.Value("[" + strings.Join(items, ",") + "]")
}
