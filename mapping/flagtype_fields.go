package mapping

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// longestCCList is how many characters a tracker takes (wire-facts.md section 3).
const longestCCList = 200

// nullable takes a text that a create may lack but an update may not blank:
// there null is refused with the field's own code.
func (f *fields) nullable(name string, update bool, code int) *string {
	value := f.rest.Get(name)
	if update && value != nil && value.Kind() == 'n' {
		f.rest.Take(name)
		f.problems.add(name, Refuse(code, "The parameter %q cannot be null.", name))
		return nil
	}
	return f.text(name)
}

// scopes takes inclusions or exclusions. Null is the default on create and no
// known field on update, as for the tracker.
func (f *fields) scopes(name string, update bool) *Scopes {
	value := f.rest.Take(name)
	if value == nil {
		return nil
	}
	if value.Kind() == 'n' {
		if update {
			f.problems.add(name+"?", Refuse(CodeUnknownField, "The parameter %q cannot be null.", name))
		}
		return nil
	}
	scopes, err := ParseScopes(name, value)
	if err != nil {
		f.problems.add(name, err)
		return nil
	}
	return &scopes
}

// sortkey takes digits in any form; everything else is refused as the tracker
// does, arrays and null on update among it.
func (f *fields) sortkey(update bool) *int {
	value := f.rest.Take("sortkey")
	if value == nil || value.Kind() == 'n' && !update {
		return nil
	}
	text, _ := scalarText(value)
	number, err := strconv.Atoi(text)
	if err != nil || !isDigits(text) {
		f.problems.add("sortkey", badSortkey())
		return nil
	}
	return &number
}

// ccList takes the interface's array or the tracker's string. A raw tracker
// refuses the array (wire-facts.md section 3), so it is joined here.
func (f *fields) ccList(update bool) *string {
	value := f.rest.Get("cc_list")
	if update && value != nil && value.Kind() == 'n' {
		f.problems.add("cc_list", wrongType("cc_list", "an array of addresses"))
	}
	if value == nil || value.Kind() != '[' {
		return f.text("cc_list")
	}
	f.rest.Take("cc_list")
	return f.joinAddresses(value)
}

func (f *fields) joinAddresses(array jsontext.Value) *string {
	addresses, ok := scalarList(array)
	if !ok {
		f.problems.add("cc_list", wrongType("cc_list", "an array of addresses"))
		return nil
	}
	for i, address := range addresses {
		addresses[i] = strings.TrimSpace(address)
		if addresses[i] == "" || strings.ContainsAny(addresses[i], ", \t\r\n;") {
			f.problems.add("cc_list", Refuse(CodeBadAddress, "%q in cc_list is not an e-mail address.", address))
			return nil
		}
	}
	joined := strings.Join(addresses, ", ")
	if utf8.RuneCountInString(joined) > longestCCList {
		joined = strings.Join(addresses, ",") // the blanks mean nothing, and a tracker counts them
	}
	return &joined
}

// group takes a group name; null, 0 and an empty text mean no group. A blank one names none, and without its blanks it would
// open the flag type to everybody, so the tracker gets it as it came and refuses it (wire-facts.md section 3, grant_group).
func (f *fields) group(name string) *string {
	value := f.rest.Get(name)
	if value == nil {
		return nil
	}
	none := ""
	if value.Kind() == 'n' {
		f.rest.Take(name)
		return &none
	}
	text := f.textOr(name, CodeNotFound)
	switch {
	case text == nil:
		return nil
	case isFalsy(*text):
		return &none
	}
	if trimmed := strings.TrimSpace(*text); !isFalsy(trimmed) {
		*text = trimmed
	}
	return text
}
