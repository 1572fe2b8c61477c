package facade

import "slices"

// accountsOfBMO lists every exchange with BMO whose answer differs, with the reason.
func accountsOfBMO() []Account {
	return slices.Concat(sharedAccounts(), []Account{
		{"The cause is in the form of a path or of the request line, which BMO and Harmony take and Portico refuses for all trackers.", Better, false, []string{
			"ft.get.nul", "proto.too_long_query",
		}},
		{"A name that the dialect has no path for is refused before the tracker is asked.", Better, true, []string{
			"ft.get.newline", "ft.get.dot", "ft.get.html",
		}},
		{"Portico names the methods that the interface has, and the headers that carry credentials.", Better, true, []string{
			"ft.get.options", "ft.get.options.preflight",
		}},
		{"OPTIONS for a resource that the tracker does not have gives an HTML page or no response; Portico names the methods of the interface.", Better, true, []string{
			"ft.get.options.collection", "ft.create.options",
		}},
		{"Portico's checks come before those that need the tracker's data.", Better, true, []string{"ft.create.auth.anon_missing"}},
		{"Ids that are no numbers and no texts have a code of their own, as with Bugzilla 5.2.", Better, false, []string{
			"att.create.bugs.ids_object", "att.create.bugs.ids_nested", "att.update.ids.nested",
		}},
		{"A JavaScript type without a callback gets no callback, as with Bugzilla 5.2.", Better, false, []string{"proto.accept.javascript"}},
		{"A response 304 has no content type.", Better, false, []string{"proto.etag.match", "proto.etag.star", "proto.etag.list"}},
		{"The recorded response is shortened and cannot be given again.", Unplayable, false, []string{
			"att.list.bug1.full", "att.get.4.anon", "att.create.data.max", "att.create.comments.read",
		}},
	})
}

// accountsOfHarmony lists every exchange with Harmony whose answer differs, with the reason.
func accountsOfHarmony() []Account {
	return append(accountsOfBMO(), Account{
		"Harmony gives errors of code 51 the status 400; those that Portico makes itself have 404 for all trackers.", Better, false, []string{
			"ft.get.query.component.two", "att.create.flags.type_text", "att.update.flags.id_text",
		},
	})
}

// sharedAccounts are those of Bugzilla 5.2 that hold for BMO and Harmony too, with the exchanges for which they do.
func sharedAccounts() []Account {
	holds := []string{
		"att.create.array.data", "att.create.object.file_name", "att.create.object.summary", "att.create.data.mixed", "att.create.data.datauri",
		"att.create.is_patch.array", "att.create.comment.array", "att.create.flags.requestee_array", "att.create.flags.string",
		"att.create.flags.array_strings", "att.create.json.array", "att.create.json.string", "att.update.comment_object",
		"att.update.is_obsolete.array", "att.update.is_obsolete.object", "att.update.bad.summary~5", "att.update.ids.other",
		"att.update.ids.string", "att.update.ids.number", "att.update.ids.empty", "att.update.ids.query", "att.update.collection",
		"att.update.flags.string", "att.update.flags.array_string", "att.update.json.string", "att.update.json.number",
		"proto.accept.html", "proto.accept.browser",
	}
	var shared []Account
	for _, account := range accountsOf52() {
		account.Names = slices.DeleteFunc(account.Names, func(name string) bool { return !slices.Contains(holds, name) })
		if len(account.Names) > 0 {
			shared = append(shared, account)
		}
	}
	return shared
}
