package mapping

import (
	"bytes"
	"io"
	"portico/mapping/jsonblob"
	"slices"
	"strings"
	"testing"
)

const goodUpload = `"file_name":"f","summary":"s","content_type":"text/plain"`

func TestDecodeAttachmentCreate(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       int
	}{
		{"minimal", `{"data":"YQ==",` + goodUpload + `}`, 0},
		{"nothing", `{}`, CodeRequired},
		{"data null", `{"data":null,` + goodUpload + `}`, CodeRequired},
		{"data empty", `{"data":"",` + goodUpload + `}`, CodeDataEmpty},
		{"data blank", `{"data":"  ",` + goodUpload + `}`, CodeDataEmpty},
		{"data number", `{"data":12345678,` + goodUpload + `}`, 0},
		{"data array", `{"data":["a"],` + goodUpload + `}`, CodeBadParameter},
		{"data not base64", `{"data":"!!!!",` + goodUpload + `}`, CodeDataEmpty},
		{"summary missing", `{"data":"YQ==","file_name":"f","content_type":"text/plain"}`, CodeSummary},
		{"summary before file_name", `{"data":"YQ=="}`, CodeSummary},
		{"file_name blank", `{"data":"YQ==","file_name":" ","summary":"s","content_type":"text/plain"}`, CodeFileName},
		{"content_type missing", `{"data":"YQ==","file_name":"f","summary":"s"}`, CodeContentType},
		{"content_type of a patch missing", `{"data":"YQ==","file_name":"f","summary":"s","is_patch":true}`, 0},
		{"content_type in capitals", `{"data":"YQ==","file_name":"f","summary":"s","content_type":"TEXT/Plain"}`, 0},
		{"content_type bad", `{"data":"YQ==","file_name":"f","summary":"s","content_type":"bogus"}`, CodeContentType},
		{"ids object", `{"data":"YQ==","ids":{"a":1},` + goodUpload + `}`, CodeNotScalars},
		{"ids nested", `{"data":"YQ==","ids":[[7]],` + goodUpload + `}`, CodeNotScalars},
		{"ids true", `{"data":"YQ==","ids":true,` + goodUpload + `}`, CodeNotScalars},
		{"ids with true", `{"data":"YQ==","ids":[7,true],` + goodUpload + `}`, CodeNotScalars},
		{"ids null", `{"data":"YQ==","ids":null,` + goodUpload + `}`, 100},
		{"ids with null", `{"data":"YQ==","ids":[7,null],` + goodUpload + `}`, 100},
		{"ids with null and an object", `{"data":"YQ==","ids":[null,{}],` + goodUpload + `}`, CodeNotScalars},
		{"flags text", `{"data":"YQ==","flags":"x",` + goodUpload + `}`, CodeBadParameter},
		{"flag without status", `{"data":"YQ==","flags":[{"type_id":1}],` + goodUpload + `}`, CodeFlagStatus},
		{"flag bad status", `{"data":"YQ==","flags":[{"type_id":1,"status":"x"}],` + goodUpload + `}`, CodeFlagStatus},
		{"flag without a name", `{"data":"YQ==","flags":[{"status":"?"}],` + goodUpload + `}`, CodeRequired},
		{"flag with an empty name", `{"data":"YQ==","flags":[{"name":"","status":"?"}],` + goodUpload + `}`, CodeRequired},
		{"flag with the id 0", `{"data":"YQ==","flags":[{"id":0,"type_id":"0","status":"?"}],` + goodUpload + `}`, CodeRequired},
		{"flag with the id 00", `{"data":"YQ==","flags":[{"id":"00","name":"r","status":"?"}],` + goodUpload + `}`, CodeNotFound},
		{"flag with the id true", `{"data":"YQ==","flags":[{"id":true,"status":"X"}],` + goodUpload + `}`, CodeBadParameter},
		{"flag with the type true", `{"data":"YQ==","flags":[{"type_id":true,"status":"?"}],` + goodUpload + `}`, CodeBadParameter},
		{"flag with an array for a status", `{"data":"YQ==","flags":[{"name":"r","status":["?"]}],` + goodUpload + `}`, CodeFlagStatus},
		{"flags in their order", `{"data":"YQ==","flags":[{"name":"r","status":"!"},{"status":"?"}],` + goodUpload + `}`, CodeFlagStatus},
		{"flags are looked up first", `{"data":"YQ==","flags":[{"name":"r","status":"!"},{"id":"x","status":"?"}],` + goodUpload + `}`, CodeNotFound},
		{"flags are looked up late", `{"data":"YQ==","flags":[{"id":"x","status":"?"}],"file_name":"f","summary":"s"}`, CodeContentType},
		{"members of a flag in their order", `{"data":"YQ==","flags":[{"new":[],"id":"x","status":"?"}],` + goodUpload + `}`, CodeNotFound},
		{"flag fine", `{"data":"YQ==","flags":[{"name":"r","status":"X","new":true}],` + goodUpload + `}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			request, err := DecodeAttachmentCreate("7", members(t, c.body), nil)
			if code := decodeError(t, err); code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
			if err == nil && request.IsPatch != nil && *request.IsPatch {
				if request.SetDefaults(); request.ContentType == nil || *request.ContentType != "text/plain" {
					t.Errorf("a patch has the type %v", request.ContentType)
				}
			}
			if err := request.Data.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAttachmentCreateBugs(t *testing.T) {
	for _, c := range []struct {
		path, ids string
		want      []string
		conflict  bool
		open      bool
	}{
		{"7", ``, []string{"7"}, false, false},
		{"7", `"ids":[7,8],`, []string{"7", "8"}, false, false},
		{"7", `"ids":["07","al"],`, []string{"07", "al"}, false, false},
		{"7", `"ids":[8],`, []string{"7"}, true, false},
		{"al", `"ids":["AL",8],`, []string{"AL", "8"}, false, false},
		{"7", `"ids":7,`, []string{"7"}, false, false},
		{"7", `"ids":[],`, []string{"7"}, false, false},
		{"7", `"ids":["al",8],`, []string{"al", "8"}, false, true},
		{"al", `"ids":[8,7],`, []string{"8", "7"}, false, true},
		{"al", `"ids":["other",7],`, []string{"other", "7"}, false, true},
	} {
		request, err := DecodeAttachmentCreate(c.path, members(t, `{"data":"YQ==",`+c.ids+goodUpload+`}`), nil)
		if err != nil || !slices.Equal(request.Bugs, c.want) || request.Conflict != c.conflict {
			t.Errorf("path %s with %s attaches to %q, conflict %v (%v)", c.path, c.ids, request.Bugs, request.Conflict, err)
		}
		if c.open != (request.PathBug == c.path) || !c.open && request.PathBug != "" {
			t.Errorf("path %s with %s leaves %q to be settled", c.path, c.ids, request.PathBug)
		}
	}
}

func TestSettlingTheBugsOfACreate(t *testing.T) {
	request := AttachmentCreate{Bugs: []string{"al", "8"}, PathBug: "7"}
	if got := request.Named(); !slices.Equal(got, []string{"7", "al", "8"}) {
		t.Errorf("the request names %q", got)
	}
	named, other := request, request
	named.Settle(true)
	other.Settle(false)
	if !slices.Equal(named.Named(), request.Bugs) || named.Conflict || named.PathBug != "" {
		t.Errorf("with the path's bug among them: %+v", named)
	}
	if !slices.Equal(other.Named(), []string{"7"}) || !other.Conflict || other.PathBug != "" {
		t.Errorf("without the path's bug: %+v", other)
	}
}

func TestDecodeAttachmentUpdate(t *testing.T) {
	for _, c := range []struct {
		name, path, body, want string
		code                   int
	}{
		{"path alone", "12", `{"summary":"s"}`, `{"ids":[12],"summary":"s"}`, 0},
		{"ids with path", "12", `{"ids":[5,"12"]}`, `{"ids":[5,12]}`, 0},
		{"ids without path", "12", `{"ids":[5]}`, "", CodeBadParameter},
		{"ids empty", "12", `{"ids":[]}`, "", CodeBadParameter},
		{"ids null", "12", `{"ids":null}`, "", CodeTargetType},
		{"ids text", "12", `{"ids":["x"]}`, "", CodeNotNumeric},
		{"ids object", "12", `{"ids":{}}`, "", CodeNotScalars},
		{"ids true", "12", `{"ids":[true]}`, "", CodeNotScalars},
		{"ids with true", "1", `{"ids":[true,1]}`, "", CodeNotScalars},
		{"ids with null", "12", `{"ids":[null,"x"]}`, "", CodeTargetType},
		{"ids text before null", "12", `{"ids":["x",null]}`, "", CodeNotNumeric},
		{"ids with blanks", "12", `{"ids":["12"," 12"]}`, "", CodeNotNumeric},
		{"path with blanks", " 12", `{}`, "", CodeNotNumeric},
		{"path text", "x", `{}`, "", CodeNotNumeric},
		{"path huge", "99999999999999999999", `{}`, "", 32000},
		{"patch forces the type", "12", `{"is_patch":1,"content_type":"image/png"}`, `{"ids":[12],"content_type":"text/plain","is_patch":1}`, 0},
		{"no patch", "12", `{"is_patch":0}`, `{"ids":[12],"is_patch":0}`, 0},
		{"summary empty", "12", `{"summary":""}`, "", CodeSummary},
		{"file_name null", "12", `{"file_name":null}`, "", CodeJSON},
		{"content_type bad", "12", `{"content_type":"bogus"}`, "", CodeContentType},
		{"content_type bad, after a boolean", "12", `{"content_type":"bogus","is_patch":[]}`, "", CodeBadParameter},
		{"content_type null", "12", `{"content_type":null}`, "", CodeContentType},
		{"content_type with blanks", "12", `{"content_type":" text/html "}`, `{"ids":[12],"content_type":"text/html"}`, 0},
		{"summary array", "12", `{"summary":["x"]}`, "", CodeBadParameter},
		{"summary 0", "12", `{"summary":"0"}`, "", CodeSummary},
		{"a member like a check", "12", `{"summary":"","flags?":1,"path?":1}`, "", CodeSummary},
		{"flags are looked up before fields", "12", `{"summary":"","flags":[{"id":"x","status":"+"}]}`, "", CodeNotFound},
		{"flags are set after fields", "12", `{"content_type":"bogus","flags":[{"id":3,"status":"!"}]}`, "", CodeContentType},
		{"boolean null", "12", `{"is_obsolete":null}`, `{"ids":[12],"is_obsolete":0}`, 0},
		{"flag for someone", "12", `{"flags":[{"name":"r","status":"?","requestee":"a"}]}`, `{"ids":[12],"flags":[{"name":"r","status":"?","requestee":"a"}]}`, 0},
		{"flag", "12", `{"flags":[{"id":"3","status":"+","requestee":null,"x":1}]}`, `{"ids":[12],"flags":[{"id":3,"status":"+","x":1}]}`, 0},
		{"unknown kept", "12", `{"minor_update":true}`, `{"ids":[12],"minor_update":true}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			request, err := DecodeAttachmentUpdate(c.path, members(t, c.body))
			if code := decodeError(t, err); code != c.code {
				t.Fatalf("code %d, want %d", code, c.code)
			}
			if err != nil {
				return
			}
			request.SetDefaults()
			m := request.Members()
			if got := string(m.AppendJSON(nil)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestCreatedReplies(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":19}`:               `{"id":19,"flag_id":19}`,
		`{"flag_id":19}`:          `{"flag_id":19,"id":19}`,
		`{"id":1,"flag_id":1}`:    `{"id":1,"flag_id":1}`,
		`{"id":"19","other":{}}`:  `{"id":19,"other":{},"flag_id":19}`,
		`{"flag_id":"x"}`:         `{"flag_id":"x","id":"x"}`,
		`{"id":null,"flag_id":5}`: `{"id":5,"flag_id":5}`,
		`{"id":5,"flag_id":null}`: `{"id":5,"flag_id":5}`,
	} {
		reply := NewDocument([]byte(text))
		if err := reply.WithFlagID(); err != nil || string(reply.text) != want {
			t.Errorf("%s becomes %s (%v), want %s", text, reply.text, err, want)
		}
	}
	reply := NewDocument([]byte(`{"attachments":{"20":{"id":20},"9":{"id":9}}}`))
	if err := reply.WithCreatedIDs(); err != nil || string(reply.text) != `{"attachments":{"20":{"id":20},"9":{"id":9}},"ids":[9,20]}` {
		t.Errorf("the map becomes %s (%v)", reply.text, err)
	}
	for text, want := range map[string]string{
		`{"ids":["5",6],"x":1}`: `{"ids":[5,6],"x":1}`,
		`{"ids": [5]}`:          `{"ids": [5]}`,
		`{"ids":["x","5"]}`:     `{"ids":["x",5]}`,
		`{"ids":"5"}`:           `{"ids":"5"}`,
	} {
		reply := NewDocument([]byte(text))
		if err := reply.WithCreatedIDs(); err != nil || string(reply.text) != want {
			t.Errorf("%s becomes %s (%v), want %s", text, reply.text, err, want)
		}
	}
}

func TestDocumentStreamsAndLoads(t *testing.T) {
	head, rest := `{"attachments":{"1":{"data":"`, strings.Repeat("YWFh", 1<<16)+`","id":1}},"bugs":{}}`
	stream := func() *Document {
		return NewStream([]byte(head), io.NopCloser(strings.NewReader(rest)), int64(len(head)+len(rest)))
	}
	var copied bytes.Buffer
	if n, err := stream().WriteTo(&copied); err != nil || n != int64(len(head)+len(rest)) || copied.String() != head+rest {
		t.Errorf("streaming gave %d bytes (%v)", n, err)
	}
	loaded := stream()
	text, err := loaded.Load(jsonblob.SplitOptions{Limits: jsonblob.Limits{BlobMemory: 1 << 10}, Dir: t.TempDir()})
	if err != nil || len(text) > 200 || len(loaded.Blobs()) != 1 {
		t.Fatalf("loading gave %d bytes and %d payloads (%v)", len(text), len(loaded.Blobs()), err)
	}
	copied.Reset()
	if _, err := loaded.WriteTo(&copied); err != nil || copied.String() != head+rest || loaded.Len() != int64(copied.Len()) {
		t.Errorf("a loaded document of length %d gives %d bytes (%v)", loaded.Len(), copied.Len(), err)
	}
	if err := loaded.Close(); err != nil {
		t.Error(err)
	}
}
