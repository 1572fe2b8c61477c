package mapping

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping/jsonblob"
)

// objectOf gives the members of a text as a request body is read, and the payloads that were taken out of it.
func objectOf(text []byte, depth int) (Members, []*jsonblob.Blob, bool) {
	skeleton, blobs, err := jsonblob.Split(nil, bytes.NewReader(text), jsonblob.SplitOptions{Depth: depth})
	if err != nil {
		return nil, nil, false
	}
	members, err := ParseMembers(skeleton)
	return members, blobs, err == nil
}

// wantRefusal demands that an error is one that a client may see and that blames the client.
func wantRefusal(t *testing.T, err error) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("an error of another type: %v", err)
	}
	if refused.Status < 400 || refused.Status > 499 || refused.Code == 0 || refused.Message == "" || refused.Reason == "" {
		t.Fatalf("not the error of a bad request: %+v", refused)
	}
}

// reread renders members and reads them again, as a tracker would get them.
func reread(t *testing.T, members Members, blobs []*jsonblob.Blob) (Members, []*jsonblob.Blob) {
	t.Helper()
	text := members.AppendJSON(nil)
	if !jsontext.Value(text).IsValid() {
		t.Fatalf("the rendered request is no JSON: %q", text)
	}
	joined, err := jsonblob.Join(text, blobs)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(joined.Open())
	if err != nil {
		t.Fatal(err)
	}
	again, blobs, ok := objectOf(whole, 1)
	if !ok {
		t.Fatalf("the rendered request cannot be read: %q", whole)
	}
	return again, blobs
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("rendered and decoded again:\n%+v, want\n%+v", got, want)
	}
}

// tidy makes empty lists of members nil: whether one was made is no difference.
func tidy(lists ...*Members) {
	for _, list := range lists {
		if len(*list) == 0 {
			*list = nil
		}
	}
}

func tidyFlags(lists ...[]FlagChange) {
	for _, list := range lists {
		for i := range list {
			tidy(&list[i].Extra)
		}
	}
}

func addFlagTypes(f *testing.F) {
	for _, text := range []string{
		`{"name":"review","description":"d"}`,
		`{"name":" a ","description":7,"target_type":"attachment","sortkey":"007","is_active":"off","x":{"y":[1]}}`,
		`{"name":"a","description":"d","inclusions":{"P":["c"],"Q":[]},"exclusions":["R",{"S":["t"]}],"cc_list":["a@example.com","b@example.com"]}`,
		`{"name":null,"description":"","cc_list":"a@example.com","grant_group":0,"request_group":null,"sortkey":null}`,
		`{"ids":[1,"2",2],"names":"n","inclusions":null,"is_requestable":null,"is_multiplicable":1e0}`,
		`{"name":"\u0000\ud83d\udea9","description":1e400,"inclusions":[5,true,{"":null}],"is_specifically_requestable":"0.0"}`,
		`{"name":[],"description":{},"sortkey":5.0,"is_active":[],"cc_list":[{}],"inclusions":[[]]}`,
	} {
		f.Add([]byte(text), "7")
		f.Add([]byte(text), "a name")
	}
}

// FuzzDecodeFlagType holds that whatever a body says, it is refused in words for the client, or understood so that what
// is sent to the tracker says the same.
func FuzzDecodeFlagType(f *testing.F) {
	addFlagTypes(f)
	f.Fuzz(func(t *testing.T, text []byte, idOrName string) {
		members, _, ok := objectOf(text, -1)
		if !ok || !utf8.ValidString(idOrName) || idOrName == "" {
			return
		}
		before := string(members.AppendJSON(nil))
		checkRoundTrip(t, members, DecodeFlagTypeCreate, func(r *FlagTypeCreate) (Members, error) {
			r.SetDefaults()
			return r.Members(Bugzilla5())
		}, func(r *FlagTypeCreate) { tidy(&r.Extra) })
		update := func(members Members) (FlagTypeUpdate, error) { return DecodeFlagTypeUpdate(idOrName, members) }
		checkRoundTrip(t, members, update, func(r *FlagTypeUpdate) (Members, error) { return r.Members(Bugzilla5()) },
			func(r *FlagTypeUpdate) { tidy(&r.Extra) })
		if after := string(members.AppendJSON(nil)); after != before {
			t.Fatalf("decoding changed the members: %s, were %s", after, before)
		}
	})
}

// checkRoundTrip decodes members, and then what a tracker would get of them.
func checkRoundTrip[T any](t *testing.T, members Members, decode func(Members) (T, error), render func(*T) (Members, error), tidied func(*T)) {
	t.Helper()
	request, err := decode(members)
	if err != nil {
		wantRefusal(t, err)
		return
	}
	rendered, err := render(&request)
	if err != nil {
		wantRefusal(t, err)
		return
	}
	text := rendered.AppendJSON(nil)
	again, _, ok := objectOf(text, -1)
	if !ok {
		t.Fatalf("the rendered request cannot be read: %q", text)
	}
	got, err := decode(again)
	if err != nil {
		t.Fatalf("%s is refused: %v", text, err)
	}
	tidied(&got)
	tidied(&request)
	same(t, got, request)
}

func addAttachments(f *testing.F) {
	for _, text := range []string{
		`{"ids":[5],"data":"c29tZQ==","file_name":"f","summary":"s","content_type":"text/plain"}`,
		`{"data":"","file_name":"f","summary":"s","is_patch":1,"comment":"c","obsoletes":[]}`,
		`{"data":7,"file_name":" ","summary":0,"content_type":"x/y","is_private":"maybe","flags":[{"name":"review","status":"?","requestee":"a"}]}`,
		`{"ids":["alias","5"],"data":"YQ","file_name":"f","summary":"s","content_type":"font/ttf;a=b","flags":[{"type_id":"007","id":1,"status":"X","new":true,"z":{}}]}`,
		`{"ids":5,"summary":"s","file_name":"f","comment":"c","content_type":"text/html","is_patch":true,"is_private":0,"is_obsolete":"no","flags":[]}`,
		`{"ids":null,"flags":[null,{},5],"summary":null,"is_obsolete":null}`,
		`{"ids":[{}],"flags":{},"data":null,"comment":[]}`,
		`{"data":["c29tZQ=="],"x":{"data":"not base64"}}`,
	} {
		f.Add([]byte(text), "5")
		f.Add([]byte(text), "Alias")
	}
}

// FuzzDecodeAttachment is FuzzDecodeFlagType for attachments.
func FuzzDecodeAttachment(f *testing.F) {
	addAttachments(f)
	f.Fuzz(func(t *testing.T, text []byte, ref string) {
		if !utf8.ValidString(ref) || ref == "" {
			return
		}
		if members, blobs, ok := objectOf(text, 1); ok {
			checkAttachmentCreate(t, ref, members, blobs)
		}
		if members, _, ok := objectOf(text, -1); ok {
			update := func(members Members) (AttachmentUpdate, error) { return DecodeAttachmentUpdate(ref, members) }
			checkRoundTrip(t, members, update, func(r *AttachmentUpdate) (Members, error) {
				r.SetDefaults()
				return r.Members(), nil
			}, func(r *AttachmentUpdate) {
				tidy(&r.Extra)
				tidyFlags(r.Flags)
			})
		}
	})
}

func checkAttachmentCreate(t *testing.T, ref string, members Members, blobs []*jsonblob.Blob) {
	t.Helper()
	request, err := DecodeAttachmentCreate(ref, members, blobs)
	if err != nil {
		wantRefusal(t, err)
		return
	}
	request.SetDefaults()
	rendered := request.Members()
	// A member of Extra may have been a payload too: an object in it that has a member data.
	rendered.Set("data", jsonblob.AppendBlob(nil, request.Data, &blobs))
	again, found := reread(t, rendered, blobs)
	got, err := DecodeAttachmentCreate(ref, again, found)
	if err != nil {
		t.Fatalf("%s is refused: %v", rendered.AppendJSON(nil), err)
	}
	gotDigest, gotErr := got.Data.Digest()
	digest, err := request.Data.Digest()
	if gotErr != nil || err != nil || gotDigest != digest || got.Data.Size() != request.Data.Size() {
		t.Fatalf("the payload has changed: %d bytes, %v; was %d bytes, %v", got.Data.Size(), gotErr, request.Data.Size(), err)
	}
	sameBugs(t, got.Bugs, request.Bugs)
	tidy(&got.Extra, &request.Extra)
	tidyFlags(got.Flags, request.Flags)
	got.Data, got.Bugs, request.Data, request.Bugs, request.Conflict = nil, nil, nil, nil, false
	same(t, got, request)
}

// sameBugs compares lists of bugs, whose numbers may be written in more ways than one.
func sameBugs(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("bugs %q, want %q", got, want)
	}
	for i := range got {
		if !sameRef(got[i], want[i]) {
			t.Fatalf("bugs %q, want %q", got, want)
		}
	}
}

// FuzzScopes holds that inclusions in any form are refused, or rendered in the one form that trackers take without losing
// a product or a component.
func FuzzScopes(f *testing.F) {
	for _, text := range []string{
		`["P","Q"]`, `{"P":["c","d"],"Q":[]}`, `["P",{"Q":["c"],"R":null},5,true]`, `{}`, `[]`, `[{}]`, `[""]`, `[null]`, `[[]]`,
		`"P"`, `5`, `null`, `{"P":"c"}`, `{"P":[{}]}`, `{" P/Q ":[" c "]}`, `[{"":[]},{"P":[null]}]`, `["\ud83d\udea9"]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value := jsontext.Value(text)
		if !value.IsValid() {
			return
		}
		scopes, failed := ParseScopes("inclusions", value)
		if failed != nil {
			wantRefusal(t, failed)
			return
		}
		rendered := jsontext.Value(scopes.array())
		if rendered.Kind() != '[' || !rendered.IsValid() {
			t.Fatalf("rendered as %q", rendered)
		}
		again, failed := ParseScopes("inclusions", rendered)
		if failed != nil {
			t.Fatalf("%s is refused: %v", rendered, failed)
		}
		same(t, again, scopes)
		for _, scope := range scopes {
			if scope.Product != strings.TrimSpace(scope.Product) || scope.Components == nil && scope.Product == "" {
				t.Fatalf("scope %+v names no product as a tracker has it", scope)
			}
		}
	})
}
