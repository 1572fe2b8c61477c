package tracker

import (
	"strconv"
	"strings"
	"time"
)

// Groups of the fixture; the ids of the last two are in the recordings.
const (
	groupEditComponents = 6
	groupEditBugs       = 8
	groupInsiders       = 15
	groupSecret         = 16
	groupGranters       = 17
	groupRequesters     = 18
	groupTestEditors    = 19
)

// Users of the fixture, by id. The order is that of keys.json; the id of the granter is in the recordings.
const (
	userAdmin = iota + 1
	userEditor
	userInsider
	userDev
	userPlain
	userNothing
	userSecret
	userGranter
	userRequester
	userPeditor
	userExinsider
	userDisabled
)

// Products of the fixture.
const (
	productTest = iota + 1
	productSlash
	productSecret
	productUnicode
	productReserved
	productClosed
	productNumber
)

// Components of the fixture.
const (
	componentTest = iota + 1
	componentA
	componentB
	componentSlash
	componentOfSlash
	componentOfSecret
	componentOfUnicode
	componentOfReserved
	componentOfClosed
	componentOfNumber
)

// fixtureData is the installation behind the recordings (tracker-behaviour.md section 13). What the recordings show of it is taken from them.
func fixtureData() *data {
	d := &data{tokens: map[string]int{}, firstToken: "PxluNu7kqe"}
	d.addGroups(fixtureGroups())
	fixtureUsers(d)
	fixtureProducts(d)
	d.addFlagTypes(fixtureFlagTypes())
	at, _ := time.Parse(timeForm, "2020-01-02T03:04:05Z") // of everything
	fixtureBugs(d, at)
	for _, a := range fixtureAttachmentList() {
		d.addAttachment(&a, at)
	}
	return d
}

// mojoFixture makes the differences between the installations behind the recordings of BMO and Harmony and the other one.
func mojoFixture(d *data) {
	for _, u := range d.users.rows {
		u.realName = strings.ToUpper(u.login[:1]) + strings.TrimSuffix(u.login[1:], "@example.com")
	}
	d.users.rows[userGranter].groups = []int{groupGranters}
	d.users.rows[userRequester].groups = []int{groupRequesters}
	d.attachments.rows[10].data = make([]byte, 13)
	d.bugs.rows[4].cc, d.bugs.rows[9].cc = []int{userDev}, []int{userDev}
	d.attachments.rows[7].data, d.attachments.rows[12].data = []byte("ex insider's own\n"), []byte("on bug thr\n")
}

func fixtureGroups() []string {
	return []string{"", "admin", "tweakparams", editUsersGroup, "creategroups", "editclassifications", editComponentsGroup, "editkeywords",
		editBugsGroup, "canconfirm", "bz_canusewhineatothers", "bz_canusewhines", "bz_sudoers", "bz_sudo_protect", "bz_quip_moderators",
		insidersGroup, "secretgroup", "granters", "requesters", "testproduct-editors"}
}

// key fills a name up to the length of an API key.
func key(name string) string { return name + strings.Repeat("0", max(0, 40-len(name))) }

func fixtureUsers(d *data) {
	for i, u := range []user{
		{login: "admin", groups: []int{adminGroup}},
		{login: "editor", groups: []int{groupEditComponents}},
		{login: "insider", groups: []int{groupInsiders, groupEditBugs}},
		{login: "dev", groups: []int{groupEditBugs}},
		{login: "plain"},
		{login: "nothing"},
		{login: "secret", groups: []int{groupSecret, groupEditBugs}},
		{login: "granter", groups: []int{groupGranters, groupEditBugs}},
		{login: "requester", groups: []int{groupRequesters, groupEditBugs}},
		{login: "peditor", groups: []int{groupTestEditors}},
		{login: "exinsider"},
		{login: "disabled", disabledText: "This account is switched off."},
	} {
		u.password, u.realName = "password1", "Test user "+u.login
		d.addUser(i+1, &u, strings.ToUpper(u.login[:1])+u.login[1:]+"Key", "@example.com")
	}
	d.users.rows[userAdmin].password = "adminpass1A!"
	dev := d.users.rows[userDev]
	dev.keys = append(dev.keys, apiKey{text: key("RevokedKey"), revoked: true})
}

func fixtureProducts(d *data) {
	d.addProducts([]product{
		{name: "TestProduct", editors: groupTestEditors}, {name: "Product/With/Slash"}, {name: "SecretProduct", group: groupSecret},
		{name: "Ünïcode 日本"}, {name: "A+B & C"}, {name: "ClosedProduct", closed: true}, {name: "4242"},
	}, []component{
		{product: productTest, name: "TestComponent"}, {product: productTest, name: "Component A"}, {product: productTest, name: "Comp B"},
		{product: productTest, name: "comp/slash"}, {product: productSlash, name: "Comp One"}, {product: productSecret, name: "Secret Comp"},
		{product: productUnicode, name: "Kömp"}, {product: productReserved, name: "100% c"}, {product: productClosed, name: "Closed Comp"},
		{product: productNumber, name: "7"},
	})
}

// fixtureFlagTypes are the 18 flag types; the sort keys follow from the order of the recorded lists.
func fixtureFlagTypes() []flagType {
	everywhere := []place{{}}
	test, number, slash := place{product: productTest}, place{product: productNumber}, place{product: productSlash}
	bugType := func(name string, sortkey int, in []place, out ...place) flagType {
		return plainType(targetBug, name, name+" flag", sortkey, in, out...)
	}
	attType := func(name string, sortkey int, in ...place) flagType {
		f := bugType(name, sortkey, in)
		f.target = targetAttachment
		return f
	}
	types := []flagType{
		attType("review", 10, everywhere...), bugType("needinfo", 10, everywhere), attType("dupname", 5, test),
		attType("dupname", 6, place{productTest, componentA}), bugType("dupname", 5, everywhere), attType("inactive", 1, everywhere...),
		attType("norequest", 1, everywhere...), attType("granted", 1, everywhere...), attType("single", 60, everywhere...),
		bugType("incexc", 1, []place{test}, place{productTest, componentSlash}), attType("norequestee", 1, everywhere...),
		attType("grantonly", 1, everywhere...), bugType("secretonly", 1, []place{{product: productSecret}}), bugType("slashonly", 1, []place{slash}),
		bugType("777", 1, []place{number}), bugType("tponly", 1, []place{test}),
		bugType("twocomps", 1, []place{{productTest, componentA}, {productTest, componentB}, slash}), bugType("excprod", 1, everywhere, slash),
	}
	types[2].description, types[3].description, types[4].description = "first duplicate", "second duplicate", "third duplicate (bug)"
	types[5].active, types[6].requestable = false, false
	types[7].grantGroup, types[7].requestGroup = groupGranters, groupRequesters
	types[8].multiplicable = false
	types[10].requesteeble, types[10].multiplicable = false, false
	types[11].grantGroup = groupGranters
	return types
}

func fixtureBugs(d *data, at time.Time) {
	words := []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	bugs := []bug{
		{component: componentA, reporter: userDev, aliases: []string{"alias-one"}},
		{component: componentTest, reporter: userDev},
		{component: componentSlash, reporter: userDev},
		{component: componentOfSecret, reporter: userSecret},
		{component: componentTest, reporter: userPlain},
		{component: componentOfSlash, reporter: userDev},
		{component: componentB, reporter: userDev},
		{component: componentTest, reporter: userDev, aliases: []string{"alias-eight", "other.alias"}},
		{component: componentOfSecret, reporter: userSecret, aliases: []string{"secret-alias"}},
		{component: componentTest, reporter: userDev},
	}
	for i, word := range words {
		b := &bugs[i]
		b.assignee, b.summary = userAdmin, "bug "+word
		d.addBug(b, at, "desc of "+b.summary)
	}
}

// blob is the content of the attachment of one megabyte; the recorded entity tag proves it.
func blob() []byte {
	b := make([]byte, 1_000_000)
	for i := range b {
		b[i] = byte(31*i + 7*(i>>8) + i>>16)
	}
	return b
}

func fixtureAttachmentList() []attachment {
	text := func(bug, creator int, fileName, summary, content string) attachment {
		return attachment{bug: bug, creator: creator, fileName: fileName, summary: summary, data: []byte(content), contentType: "text/plain"}
	}
	list := []attachment{
		text(1, userDev, "public.txt", "public text", "hello public\n"),
		text(1, userInsider, "private.txt", "private text", "hello private\n"),
		text(1, userDev, "fix.patch", "obsolete patch", "--- a\n+++ b\n"),
		text(1, userDev, "blob.bin", "binary 1 MB", ""),
		text(1, userDev, "x", "one byte", "x"),
		text(1, userDev, "flagged.txt", "flagged attachment", "flagged\n"),
		text(1, userExinsider, "ex.txt", "private of former insider", "mine and private\n"),
		text(4, userSecret, "s.txt", "in secret bug", "secret bug data\n"),
		text(1, userDev, "snöwman ☃.txt", "résumé ☃", "\xff\x00\xfe\x80"),
		text(1, userDev, "del.txt", "deleted", ""),
		text(5, userPlain, "own.txt", "plain own attachment", "plain's own\n"),
		text(3, userDev, "b3.txt", "on bug three", "slash comp\n"),
		text(10, userDev, "t1.txt", "ten "+strconv.Itoa(1), "ten one\n"),
		text(10, userDev, "t2.txt", "ten "+strconv.Itoa(2), "ten two\n"),
		text(5, userInsider, "p5.txt", "private in bug five", "private on plain's bug\n"),
	}
	list[1].private, list[6].private, list[14].private = true, true, true
	list[2].obsolete, list[2].patch = true, true
	list[3].data, list[3].contentType = blob(), "application/octet-stream"
	list[8].contentType = "application/x-foo; charset=utf-8"
	list[9].obsolete, list[9].deleted = true, true
	list[0].flags = []flag{{id: 6, flagType: 9, status: "?", setter: userDev}}
	list[2].flags = []flag{{id: 7, flagType: 1, status: "-", setter: userDev}}
	list[5].flags = []flag{
		{id: 1, flagType: 1, status: "?", setter: userDev, requestee: userGranter}, {id: 2, flagType: 9, status: "+", setter: userDev},
		{id: 3, flagType: 3, status: "?", setter: userDev}, {id: 4, flagType: 1, status: "?", setter: userInsider, requestee: userPlain},
		{id: 5, flagType: 8, status: "+", setter: userGranter},
	}
	list[10].flags = []flag{{id: 8, flagType: 1, status: "?", setter: userDev, requestee: userNothing}}
	return list
}
