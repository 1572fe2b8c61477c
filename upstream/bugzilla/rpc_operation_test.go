package bugzilla_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream/bugzilla"
)

// xmlCall is a call of XML-RPC with one struct.
func xmlCall(method, members string) string {
	return "<?xml version='1.0'?><methodCall><methodName>" + method + "</methodName><params><param><value><struct>" + members +
		"</struct></value></param></params></methodCall>"
}

// xmlMember is a member of a struct.
func xmlMember(name, value string) string {
	return "<member><name>" + name + "</name><value>" + value + "</value></member>"
}

// inEncoding declares the encoding of a call.
func inEncoding(name, call string) string {
	return strings.Replace(call, "'1.0'", `"1.0" encoding="`+name+`"`, 1)
}

// readOperation reads a call and closes its payloads.
func readOperation(t testing.TB, script, kind, body string) *bugzilla.RPCOperation {
	t.Helper()
	found, err := bugzilla.ReadOperation(script, kind, strings.NewReader(body), jsonblob.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if found != nil {
		t.Cleanup(func() { _ = jsonblob.CloseBlobs(found.Blobs) })
	}
	return found
}

func TestReadOperation(t *testing.T) {
	t.Parallel()
	file := xmlMember("ids", "<array><data><value><i4>7</i4></value></data></array>") + xmlMember("file_name", "f &amp; g") + xmlMember("is_patch", "<boolean>1</boolean>")
	long := strings.Repeat("QUJD\n", 100_000)
	for name, c := range map[string]struct{ script, kind, body, selected, summary, content string }{
		"JSON-RPC 1.0":    {"jsonrpc.cgi", "application/json", `{"method":"Bug.add_attachment","params":[{"ids":[7],"data":"QUJD","file_name":"f & g","is_patch":1}],"id":1}`, "7", "f & g", "ABC"},
		"JSON-RPC 1.1":    {"jsonrpc.cgi", "application/json", `{"id":"x","version":"1.1","params":{"data":"QUJD","ids":"7","file_name":"f & g"},"method":"Bug.add_attachment"}`, "7", "f & g", "ABC"},
		"XML-RPC":         {"xmlrpc.cgi", "text/xml", xmlCall("Bug.add_attachment", file+xmlMember("data", "<base64>\nQUJD\n</base64>")), "7", "f & g", "ABC"},
		"content as text": {"xmlrpc.cgi", "text/xml", xmlCall("Bug.add_attachment", file+xmlMember("data", "<string>ABC</string>")), "7", "f & g", "ABC"},
		"ISO-8859-1":      {"xmlrpc.cgi", "text/xml", inEncoding("iso-8859-1", xmlCall("Bug.add_attachment", xmlMember("ids", "7")+xmlMember("file_name", "\xfc\x80&#8364;")+xmlMember("data", "<base64>QUJD</base64>"))), "7", "ü\u0080€", "ABC"},
		"Windows-1252":    {"xmlrpc.cgi", "text/xml", inEncoding("Windows-1252", xmlCall("Bug.add_attachment", xmlMember("ids", "7")+xmlMember("file_name", "\xfc\x80")+xmlMember("data", "<base64>QUJD</base64>"))), "7", "ü€", "ABC"},
		"US-ASCII":        {"xmlrpc.cgi", "text/xml", inEncoding("us-ascii", xmlCall("Bug.add_attachment", file+xmlMember("data", "<base64>QUJD</base64>"))), "7", "f & g", "ABC"},
		"text alone":      {"xmlrpc.cgi", "application/xml", xmlCall("\nBug.add_attachment\n", file+xmlMember("data", "ABC")), "7", "f & g", "ABC"},
		"long content":    {"xmlrpc.cgi", "text/xml", xmlCall("Bug.add_attachment", file+xmlMember("data", "<base64>"+long+"</base64>")), "7", "f & g", strings.Repeat("ABC", 100_000)},
	} {
		found := readOperation(t, c.script, c.kind, c.body)
		if found == nil || found.Operation != mapping.OpCreateAttachment || found.Selected != c.selected {
			t.Errorf("%s is read as %+v", name, found)
			continue
		}
		request, err := mapping.DecodeAttachmentCreate(found.Selected, found.Params, found.Blobs)
		if request.FileName == nil || *request.FileName != c.summary || request.Data == nil || request.Data.Size() != int64(len(c.content)) {
			t.Errorf("%s: the request is %+v, %v", name, request, err)
		}
	}
}

// TestReadOperationHasNoForm: what could mean something else to the tracker is left to it.
func TestReadOperationHasNoForm(t *testing.T) {
	t.Parallel()
	json := `{"method":"Bug.update_attachment","params":[{"ids":[7],"summary":"s"}],"id":1}`
	members := xmlMember("ids", "<int>7</int>")
	for name, c := range map[string]struct{ script, kind, body string }{
		"a type that any page may send": {"jsonrpc.cgi", "text/plain", json},
		"several calls":                 {"jsonrpc.cgi", "application/json", "[" + json + "]"},
		"a notification":                {"jsonrpc.cgi", "application/json", strings.Replace(json, `"id":1`, `"id":null`, 1)},
		"two methods":                   {"jsonrpc.cgi", "application/json", strings.Replace(json, `"id":1`, `"id":1,"method":"Bug.get"`, 1)},
		"two objects":                   {"jsonrpc.cgi", "application/json", strings.Replace(json, `}]`, `},{}]`, 1)},
		"no parameters":                 {"jsonrpc.cgi", "application/json", `{"method":"Bug.update_attachment","id":1}`},
		"another method":                {"jsonrpc.cgi", "application/json", strings.Replace(json, "update_attachment", "update", 1)},
		"content where none belongs":    {"jsonrpc.cgi", "application/json", strings.Replace(json, `"summary":"s"`, `"data":"QUJD"`, 1)},
		"content in a flag":             {"jsonrpc.cgi", "application/json", `{"method":"Bug.add_attachment","params":[{"ids":[7],"flags":[{"data":"QUJD"}]}],"id":1}`},
		"no base64":                     {"jsonrpc.cgi", "application/json", `{"method":"Bug.add_attachment","params":[{"ids":[7],"data":"!"}],"id":1}`},
		"a name of digits":              {"jsonrpc.cgi", "application/json", `{"method":"FlagType.update","params":[{"names":["777"]}],"id":1}`},
		"several calls of XML-RPC":      {"xmlrpc.cgi", "text/xml", xmlCall("system.multicall", members)},
		"half of a call":                {"xmlrpc.cgi", "text/xml", strings.TrimSuffix(xmlCall("Bug.update_attachment", members), "</methodCall>")},
		"UTF-16 by name":                {"xmlrpc.cgi", "text/xml", inEncoding("UTF-16", xmlCall("Bug.update_attachment", members))},
		"bytes that are not UTF-8":      {"xmlrpc.cgi", "text/xml", xmlCall("Bug.update_attachment", members+xmlMember("summary", "\xfc"))},
		"a time":                        {"xmlrpc.cgi", "text/xml", xmlCall("Bug.update_attachment", members+xmlMember("summary", "<dateTime.iso8601>20260101T00:00:00</dateTime.iso8601>"))},
		"an entity of its own":          {"xmlrpc.cgi", "text/xml", xmlCall("Bug.update_attachment", members+xmlMember("summary", "&own;"))},
		"a list":                        {"xmlrpc.cgi", "text/xml", strings.Replace(xmlCall("Bug.update_attachment", members), "struct>", "array>", 2)},
	} {
		if found := readOperation(t, c.script, c.kind, c.body); found != nil {
			t.Errorf("%s is read as %+v", name, found)
		}
	}
}

// FuzzReadOperation: no call upsets the reader, and no reply the writer.
func FuzzReadOperation(f *testing.F) {
	for _, seed := range []string{
		`{"method":"Bug.add_attachment","params":[{"ids":[7],"data":"QUJD"}],"id":1}`, `{"method":"Bug.attachments","params":{"attachment_ids":"1"},"id":"x"}`,
		xmlCall("Bug.add_attachment", xmlMember("data", "<base64>QUJD</base64>")), xmlCall("FlagType.get", xmlMember("product", "P")),
		xmlCall("FlagType.update", xmlMember("names", "<array><data><value>n</value></data></array>")+xmlMember("x", "<int>-0E+0</int>")), "<base64>", "<a>&#0;",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for script, kind := range map[string]string{"jsonrpc.cgi": "application/json", "xmlrpc.cgi": "text/xml"} {
			found := readOperation(t, script, kind, string(body))
			if found == nil {
				continue
			}
			if len(found.Blobs) > 1 || len(found.Blobs) == 1 && found.Operation != mapping.OpCreateAttachment {
				t.Errorf("%s has %d payloads", found.Operation, len(found.Blobs))
			}
			text := found.Params.AppendJSON([]byte(`{"error":null,"result":`))
			document := mapping.NewStream(append(text, '}'), io.NopCloser(strings.NewReader("")), -1)
			if reply, err := found.Reply(document, jsonblob.SplitOptions{}); err == nil {
				_, _ = reply.WriteTo(io.Discard)
			}
			_ = document.Close()
		}
	})
}

// TestXMLReply: trackers leave out members of XML-RPC that are undefined, since many clients do not know <nil/>, and name a length, which
// clients of XML-RPC want. What only Portico adds to a reply is not there.
func TestXMLReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, members, reply, want, never string }{
		{"FlagType.update", xmlMember("ids", "<int>1</int>"), `{"flagtypes":[{"id":1,"name":"n","changes":{"grant_group_id":{"removed":null,"added":"5"}}}]}`, "added", "removed"},
		{"FlagType.create", xmlMember("name", "n"), `{"id":7,"flag_id":7}`, "<name>id</name>", "flag_id"},
		{"Bug.attachments", xmlMember("attachment_ids", "<int>1</int>"), `{"bugs":{},"attachments":{"1":{"data":"QUJD","id":1}}}`, "<base64>QUJD</base64>", "null"},
		{"Bug.attachments", xmlMember("attachment_ids", "<int>1</int>"), `{"bugs":{},"attachments":{"1":{"id":1,"data":null}}}`, "<name>id</name>", "data"},
	} {
		document := mapping.NewDocument([]byte(c.reply))
		reply, err := readOperation(t, "xmlrpc.cgi", "text/xml", xmlCall(c.method, c.members)).Reply(document, jsonblob.SplitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if n, err := reply.WriteTo(&text); err != nil || n != reply.Len() || !strings.Contains(text.String(), c.want) || strings.Contains(text.String(), c.never) || strings.Contains(text.String(), "nil") {
			t.Errorf("%s: %s, %v", c.method, &text, err)
		}
	}
}

// What a call takes counts for the memory that bodies share, and that is many times its text.
func TestXMLHoldsMemory(t *testing.T) {
	t.Parallel()
	left := 1 << 20
	options := jsonblob.SplitOptions{Hold: func(more int) error {
		if left -= more; left < 0 {
			return mapping.StorageFull(nil)
		}
		return nil
	}}
	for _, c := range []struct{ attributes, err int }{{1000, 0}, {100_000, 503}} {
		body := xmlCall("Bug.update_attachment", xmlMember("ids", "<int>7</int>")+xmlMember("x", "<int "+strings.Repeat(`a="" `, c.attributes)+">1</int>"))
		found, err := bugzilla.ReadOperation("xmlrpc.cgi", "text/xml", strings.NewReader(body), options)
		refused, _ := errors.AsType[*mapping.Error](err)
		if c.err == 0 && (found == nil || err != nil) || c.err != 0 && (found != nil || refused == nil || refused.Status != c.err) {
			t.Errorf("%d attributes: %+v, %v", c.attributes, found, err)
		}
	}
}

// TestXMLIsBounded: elements take many times the memory of their text, and nested ones much of the stack.
func TestXMLIsBounded(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return strings.Repeat("<array><data><value>", n) + "x" + strings.Repeat("</value></data></array>", n)
	}
	for _, c := range []struct {
		name, value string
		isRead      bool
	}{
		{"few levels", nested(25), true}, {"many levels", nested(1000), false},
		{"many ids", "<array><data>" + strings.Repeat("<value><int>7</int></value>", 2000) + "</data></array>", true},
		{"too many elements", "<array><data>" + strings.Repeat("<nil/>", 50_000) + "</data></array>", false},
	} {
		body := xmlCall("Bug.update_attachment", xmlMember("ids", "<int>7</int>")+xmlMember("other", c.value))
		for _, body := range []string{body, inEncoding("iso-8859-1", body)} {
			if found := readOperation(t, "xmlrpc.cgi", "text/xml", body); (found != nil) != c.isRead {
				t.Errorf("%s: read as %+v", c.name, found)
			}
		}
	}
}
