// The npm packages bugzilla and bz, as their users call them, against a Portico: node npm-clients.cjs URL KEY, after esbuild has bundled
// this file with both. It creates, reads and updates attachments of bug 2, and fails where a client throws or gets something else.
import assert from "node:assert/strict";
import { promisify } from "node:util";
import BugzillaAPI from "bugzilla";
import { createClient } from "bz";

const [url, key] = process.argv.slice(2);

async function bugzilla() {
	const api = new BugzillaAPI(url, key);
	const data = Buffer.from("content of npm bugzilla");
	const [id] = await api.createAttachment(2, { ids: [2], data, file_name: "a.txt", summary: "from npm bugzilla", content_type: "text/plain" });
	const read = await api.getAttachment(id);
	assert.equal(read.summary, "from npm bugzilla");
	assert.equal(Buffer.from(read.data).toString(), data.toString());
	const [updated] = await api.updateAttachment(id, { ids: [id], summary: "updated" });
	assert.equal(updated.id, id);
	const all = await api.getBugAttachments(2);
	assert.equal(all.find((each) => each.id === id).summary, "updated");
}

async function bz() {
	const client = createClient({ url: url + "/rest", api_key: key });
	const call = (method, ...args) => promisify(client[method].bind(client))(...args);
	const data = Buffer.from("content of npm bz").toString("base64");
	const id = await call("createAttachment", 2, { ids: [2], data, file_name: "b.txt", summary: "from npm bz", content_type: "text/plain" });
	assert.equal((await call("getAttachment", id)).data, data);
	await call("updateAttachment", id, { ids: [id], is_obsolete: true });
	const mine = (await call("bugAttachments", 2)).find((each) => each.id === Number(id));
	assert.equal(mine.data, data);
	assert.equal(mine.is_obsolete, 1);
}

bugzilla().then(bz).then(
	() => console.log("npm bugzilla and npm bz: all attachment operations work"),
	(error) => {
		console.error(error);
		process.exit(1);
	},
);
