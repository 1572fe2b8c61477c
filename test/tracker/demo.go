package tracker

import (
	"slices"
	"strings"
	"time"
)

// Users of the demo, by id.
const (
	demoAdmin = iota + 1
	demoEditor
	demoInsider
	demoDeveloper
	demoReviewer
	demoReporter
	demoBot
)

// Groups of the demo beyond those that every installation has.
const (
	demoGroupStaff    = 16
	demoGroupReviewer = 17
	demoGroupLeads    = 18
)

// Keys gives the API keys of a seed by user, for those who want to try a tracker. They are test values.
func Keys(s Seed) map[string]string {
	keys := map[string]string{}
	for _, u := range seedData(s).users.rows {
		for _, k := range u.keys {
			if !k.revoked {
				keys[u.login] = k.text
			}
		}
	}
	return keys
}

// FixtureKeys gives the API keys of the fixture by the short names of their users. One is revoked, and one was never given out.
func FixtureKeys() map[string]string {
	keys := map[string]string{}
	for name := range strings.FieldsSeq("admin editor insider dev plain nothing secret granter requester peditor exinsider disabled revoked invalid") {
		keys[name] = (strings.ToUpper(name[:1]) + name[1:] + "Key" + strings.Repeat("0", 40))[:40]
	}
	return keys
}

// seedData is what a tracker with a seed starts with.
func seedData(s Seed) *data {
	switch s {
	case SeedDemo:
		return demoData("Demo", 0)
	case SeedCopy:
		return demoData("Copy", 100)
	}
	return fixtureData()
}

// demoData is a small realistic installation. Keys begin with a prefix, and ids are higher by an offset.
func demoData(keyPrefix string, offset int) *data {
	d := &data{tokens: map[string]int{}, offset: offset, lastFlag: offset}
	d.bugs.last, d.attachments.last, d.flagTypes.last = offset, offset, offset
	d.addGroups(slices.Concat(fixtureGroups()[:groupInsiders+1], []string{"staff", "reviewers", "release-leads"}))
	demoUsers(d, keyPrefix)
	demoProducts(d)
	d.addFlagTypes(demoFlagTypes())
	at, _ := time.Parse(timeForm, "2026-03-02T09:30:00Z") // the first bug; each further one comes a day later
	demoBugs(d, at)
	demoAttachments(d, at.AddDate(0, 1, 0))
	return d
}

func demoUsers(d *data, keyPrefix string) {
	for i, u := range []user{
		{login: "admin", realName: "Ada Admin", groups: []int{adminGroup}},
		{login: "editor", realName: "Edith Editor", groups: []int{groupEditComponents, groupEditBugs}},
		{login: "insider", realName: "Ines Insider", groups: []int{groupInsiders, groupEditBugs, demoGroupStaff}},
		{login: "developer", realName: "Dev Developer", groups: []int{groupEditBugs, demoGroupStaff}},
		{login: "reviewer", realName: "Rae Reviewer", groups: []int{groupEditBugs, demoGroupReviewer, demoGroupLeads}},
		{login: "reporter", realName: "Rob Reporter"},
		{login: "ci-bot", realName: "CI Bot", groups: []int{groupEditBugs}},
	} {
		u.password = "demo-password"
		d.addUser(i+1, &u, keyPrefix+strings.ReplaceAll(u.login, "-", "")+"Key", "@demo.example") // the form of an API key: letters and digits
	}
}

func demoProducts(d *data) {
	d.addProducts([]product{
		{name: "WebShop", description: "The shop that customers see"},
		{name: "Mobile App", description: "The app for phones"},
		{name: "Internal Tools", description: "What only staff use", group: demoGroupStaff},
	}, []component{
		{product: 1, name: "Checkout", description: "Basket and payment"},
		{product: 1, name: "Search/Ranking", description: "What is found, and in which order"},
		{product: 1, name: "Accounts", description: "Logins and addresses"},
		{product: 2, name: "Android", description: "The app for Android"},
		{product: 2, name: "iOS", description: "The app for iOS"},
		{product: 2, name: "Sync/Offline", description: "Working without a network"},
		{product: 3, name: "Build Farm", description: "Where everything is built"},
		{product: 3, name: "Reports", description: "Figures for every Monday"},
	})
}

func demoFlagTypes() []flagType {
	everywhere := []place{{}}
	types := []flagType{
		plainType(targetAttachment, "review", "A reviewer has read the patch", 10, everywhere),
		plainType(targetAttachment, "superreview", "A reviewer has read a patch that touches much", 20, everywhere),
		plainType(targetAttachment, "ui-review", "The looks are fine", 30, []place{{product: 1}, {product: 2}}),
		plainType(targetAttachment, "approval-release", "May go into the release", 40, everywhere),
		plainType(targetAttachment, "checked-in", "The patch is in", 50, everywhere),
		plainType(targetBug, "needinfo", "A user is asked for more", 10, everywhere),
		plainType(targetBug, "blocking-release", "The release waits for this", 20, everywhere),
		plainType(targetBug, "in-testsuite", "A test exists", 30, everywhere),
		plainType(targetBug, "ranking-impact", "Changes what customers find", 40, []place{{1, 2}}),
		plainType(targetBug, "old-triage", "No longer in use", 50, everywhere),
	}
	types[1].grantGroup = demoGroupReviewer
	types[3].grantGroup, types[3].requestGroup = demoGroupLeads, demoGroupStaff
	types[4].requestable, types[4].requesteeble, types[4].multiplicable = false, false, false
	types[6].grantGroup = demoGroupLeads
	types[7].requestable, types[7].multiplicable = false, false
	types[9].active = false
	return types
}

func demoBugs(d *data, at time.Time) {
	for _, b := range []bug{
		{component: 1, summary: "Basket forgets its content after login", status: "CONFIRMED", aliases: []string{"lost-basket"}},
		{component: 1, summary: "Payment page shows the price twice", status: "IN_PROGRESS"},
		{component: 2, summary: "Searching for a slash finds nothing", status: "CONFIRMED", aliases: []string{"slash-search"}},
		{component: 2, summary: "Ranking puts sold-out items first", status: "RESOLVED"},
		{component: 3, summary: "Address form refuses long street names", status: "UNCONFIRMED"},
		{component: 4, summary: "App asks for the location on every start", status: "CONFIRMED"},
		{component: 5, summary: "Pull to refresh does nothing", status: "IN_PROGRESS"},
		{component: 6, summary: "Offline changes are lost after a week", status: "CONFIRMED"},
		{component: 6, summary: "Syncing drains the battery", status: "UNCONFIRMED"},
		{component: 7, summary: "Nightly build stops without a message", status: "CONFIRMED"},
		{component: 8, summary: "Weekly report counts returns as sales", status: "RESOLVED"},
		{component: 1, summary: "Voucher is taken twice", status: "CONFIRMED", groups: []int{demoGroupStaff}},
	} {
		b.reporter, b.assignee = demoReporter, demoDeveloper
		d.addBug(&b, at, b.summary+". It happens every time.")
		at = at.AddDate(0, 0, 1)
	}
}

func demoAttachments(d *data, at time.Time) {
	for _, a := range []attachment{
		{bug: 1, creator: demoDeveloper, fileName: "keep-basket.patch", summary: "Keep the basket across logins", contentType: patchType, patch: true,
			data:  []byte("--- a/basket.go\n+++ b/basket.go\n@@ -1 +1 @@\n-forget()\n+keep()\n"),
			flags: []flag{{flagType: 1, status: "?", setter: demoDeveloper, requestee: demoReviewer}, {flagType: 3, status: "+", setter: demoReviewer}}},
		{bug: 1, creator: demoDeveloper, fileName: "first-try.patch", summary: "First try", contentType: patchType, patch: true, obsolete: true,
			data: []byte("--- a\n+++ b\n"), flags: []flag{{flagType: 1, status: "-", setter: demoReviewer}}},
		{bug: 1, creator: demoReporter, fileName: "basket.png", summary: "What I see", contentType: "image/png", data: []byte("\x89PNG\r\n\x1a\n")},
		{bug: 2, creator: demoReporter, fileName: "two prices.txt", summary: "Both prices", contentType: "text/plain", data: []byte("12.90\n12.90\n")},
		{bug: 3, creator: demoDeveloper, fileName: "slash.patch", summary: "Quote slashes", contentType: patchType, patch: true,
			data:  []byte("--- a/query.go\n+++ b/query.go\n"),
			flags: []flag{{flagType: 1, status: "+", setter: demoReviewer}, {flagType: 4, status: "?", setter: demoDeveloper, requestee: demoReviewer}}},
		{bug: 8, creator: demoInsider, fileName: "customer-log.txt", summary: "Log with names in it", contentType: "text/plain", private: true,
			data: []byte("2026-03-09 sync failed\n")},
		{bug: 10, creator: demoBot, fileName: "build.log", summary: "Log of the failed build", contentType: "text/plain", data: []byte("step 7 of 9: killed\n")},
		{bug: 12, creator: demoDeveloper, fileName: "vouchers.csv", summary: "Affected vouchers", contentType: "text/csv", data: []byte("voucher,times\nSPRING,2\n")},
	} {
		d.addAttachment(&a, at)
		at = at.Add(7 * time.Hour)
	}
}
