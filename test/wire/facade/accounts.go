package facade

import (
	"slices"
	"strings"
)

// Kind says how an answer of Portico stands to the recorded one.
type Kind string

// The kinds.
const (
	// Same is an answer that no client can tell from the recorded one.
	Same Kind = "same"
	// Better is a difference that docs/divergences.md explains.
	Better Kind = "better by design"
	// Unplayable is an exchange whose recorded answer cannot be given again.
	Unplayable Kind = "not replayable"
	// Different is a difference without an explanation.
	Different Kind = "different"
)

// Account is why the answers of some exchanges differ from the recorded ones.
type Account struct {
	// Reason is a sentence, as in docs/divergences.md.
	Reason string
	Kind   Kind
	// May says that the exchanges need not differ.
	May bool
	// Names are exchanges; each must differ, or the row is out of date, unless it may only.
	Names []string
}

// headersApart are headers that differ on every answer of the seven operations.
// Each one is a row of docs/divergences.md.
var headersApart = []string{
	"header etag",              // the tracker's is unquoted and unstable; Portico has its own, on flag type reads only
	"header set-cookie",        // a random cookie on each anonymous answer has no place in a shared one
	"header transfer-encoding", // Portico knows the length and says it
	"header content-length",
}

// headersOfMojo differ on every response of BMO and Harmony.
var headersOfMojo = []string{
	"header cache-control",                // Harmony forbids caches; Portico forbids sharing, where a key is in a header
	"header access-control-allow-headers", // Portico names those of 5.2, and on a preflight those that carry credentials
}

// significant drops differences that are accounted for everywhere: those headers, the second name of a new flag type's id, and
// the ids of new attachments, which BMO and Harmony do not list.
func significant(diff, headers []string) []string {
	return slices.DeleteFunc(slices.Clone(diff), func(line string) bool {
		for _, header := range headers {
			if strings.HasPrefix(line, header+":") {
				return true
			}
		}
		return strings.HasPrefix(line, "body .flag_id: not recorded") || strings.HasPrefix(line, "body .ids: not recorded")
	})
}

// accountsOf52 lists every exchange with Bugzilla 5.2 whose answer differs, with the reason.
func accountsOf52() []Account {
	return slices.Concat(accountsOfForms(), accountsOfBodies(), unplayable())
}

// accountsOfForms are of paths and of the forms of single members.
func accountsOfForms() []Account {
	return []Account{
		{"Names that a path of the raw tracker cannot carry are reached by query or JSON-RPC.", Better, false, []string{
			"ft.get.slash.encoded", "ft.get.slash.double_encoded", "ft.get.reserved.component", "ft.get.html",
		}},
		{"A path with NUL is refused in the tracker's error shape instead of a page.", Better, false, []string{"ft.get.nul"}},
		{"A request line that is too long is refused in the tracker's error shape instead of a page.", Better, false, []string{"proto.too_long_query"}},
		{"A response to a request with a key in a header tells caches not to share it.", Better, false, []string{
			"auth.header.X-BUGZILLA-API-KEY", "auth.header.x_login",
		}},
		{"A preflight allows the headers that carry credentials.", Better, false, []string{"ft.get.options.preflight"}},
		{"Arrays and objects where a text is due are refused; the tracker stores their address.", Better, false, []string{
			"ft.create.name.array", "ft.create.name.object", "ft.create.description.array", "ft.create.description.object",
			"att.create.array.data", "att.create.object.file_name", "att.create.object.summary",
			"att.create.comment.array", "att.update.comment_object", "att.update.bad.summary~5",
		}},
		{"Arrays, objects and unknown words are no booleans; the tracker takes them for true.", Better, false, []string{
			"ft.create.is_active.array", "ft.create.is_active.object", "ft.update.value.is_active~10", "ft.update.value.is_active~11",
			"att.create.is_patch.array", "att.update.is_obsolete.array", "att.update.is_obsolete.object",
		}},
		{"A sortkey is 1 to 32767; the tracker takes 0 too.", Better, false, []string{
			"ft.create.sortkey.0", "ft.create.sortkey.false", "ft.update.sortkey.0",
		}},
		{"The form is allowed and sent in one that the tracker takes; the recorded internal error, replayed, has status 500.", Better, false, []string{
			"ft.create.inclusions.bare_object", "ft.create.inclusions.bare_empty_object", "ft.update.inclusions.bare_empty_object",
			"ft.update.exclusions.bare_object", "ft.update.ids.body_string", "ft.update.ids_query",
		}},
		{"What makes the tracker fail with an internal error is refused.", Better, false, []string{
			"ft.create.inclusions.number", "ft.create.inclusions.false", "ft.update.inclusions.string",
			"ft.update.inclusions.component_string", "ft.update.inclusions.true", "ft.update.ids.body_comma",
			"att.create.flags.requestee_array", "att.create.flags.string", "att.create.flags.array_strings",
			"att.update.flags.string", "att.update.flags.array_string",
		}},
		{"Components of a product whose name the tracker drops cannot be expressed and are refused.", Better, false, []string{
			"ft.create.inclusions.key_slash", "ft.create.inclusions.key_unicode",
			"ft.update.inclusions.key_slash", "ft.update.inclusions.key_slash_and_good",
		}},
		{"Components are an array; the tracker takes null for an empty one, so that the flag type applies nowhere in the product.", Better, false, []string{
			"ft.create.inclusions.component_null", "ft.update.inclusions.component_null",
		}},
	}
}

// accountsOfBodies are of bodies as a whole, and of what their members mean together.
func accountsOfBodies() []Account {
	return []Account{
		{"Portico's checks come before those that need the tracker's data.", Better, false, []string{
			"ft.create.order.fields", "ft.create.order.without_inclusions", "ft.create.auth.plain_missing",
		}},
		{"Bodies that are not UTF-8 or have duplicate members are refused.", Better, false, []string{
			"ft.create.charset_latin1", "ft.create.json.dup_keys", "ft.create.json.notutf8",
		}},
		{"Bodies that are not JSON objects are refused; the tracker sends no response.", Better, false, []string{
			"ft.create.json.array_object", "ft.create.json.string", "ft.create.json.number", "ft.update.json.string",
			"att.create.json.array", "att.create.json.string", "att.update.json.string", "att.update.json.number",
		}},
		{"Data that is not base64 is refused; the tracker stores what it can make of it.", Better, false, []string{
			"att.create.data.mixed", "att.create.data.datauri",
		}},
		{"Ids that leave out the path's attachment contradict it and are refused.", Better, false, []string{
			"att.update.ids.other", "att.update.ids.string", "att.update.ids.number", "att.update.ids.empty", "att.update.ids.query",
		}},
		{"Writes to the collection of attachments never reach the tracker, which would edit bugs.", Better, false, []string{"att.update.collection"}},
	}
}

// unplayable are exchanges whose recorded answer cannot be given again.
func unplayable() []Account {
	return []Account{
		{"The recorded response is shortened and cannot be given again.", Unplayable, false, []string{
			"att.list.bug1.full", "att.get.4.anon", "att.create.comments.read",
		}},
		{"The recorded response is a page; Portico asks the tracker for JSON and makes the page itself.", Unplayable, false, []string{
			"proto.accept.html", "proto.accept.browser",
		}},
	}
}

// accountOf finds the row of an exchange.
func accountOf(accounts []Account, name string) (Account, bool) {
	for _, account := range accounts {
		if slices.Contains(account.Names, name) {
			return account, true
		}
	}
	return Account{}, false
}
