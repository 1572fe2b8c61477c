"""Uses the library python-bugzilla as bots do: library.py URL KEY. It prints what it was given as JSON."""
import io
import json
import sys

import bugzilla

bz = bugzilla.Bugzilla(sys.argv[1], api_key=sys.argv[2])
bug = bz.createbug(bz.build_createbug(
    product="TestProduct", component="TestComponent", version="unspecified", summary="filed by a bot", description="d", severity="minor"))
bug.addcomment("a bot's comment")
bz.update_flags([bug.id], [{"name": "needinfo", "status": "?", "requestee": "plain@example.com"}])
bz.update_bugs([bug.id], bz.build_update(status="RESOLVED", resolution="FIXED", whiteboard="done", cc_add="plain@example.com"))
content = bytes(range(256))
attachment = bz.attachfile(bug.id, io.BytesIO(content), "bytes", file_name="b.bin", content_type="application/octet-stream")
bz.updateattachmentflags(bug.id, attachment, "review", status="+")
bug.refresh()
print(json.dumps({
    "logged_in": bz.logged_in,
    "bug": bug.id,
    "summary": bug.summary,
    "resolution": bug.resolution,
    "flags": bug.get_flag_status("needinfo"),
    "comments": [c["text"] for c in bug.getcomments()][:2],
    "attachments": [a["file_name"] for a in bug.get_attachments()],
    "content": bz.openattachment(attachment).read() == content,
    "found": [b.id for b in bz.query(bz.build_query(product="TestProduct", status="RESOLVED"))],
    "found_of_two": [b.id for b in bz.getbugs([2, 99])],
    "user": bz.getuser("plain@example.com").real_name,
    "version": bz.bz_ver_major,
}))
