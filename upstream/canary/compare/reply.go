package compare

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// Reply is one side of a comparison: all of a response that is compared.
type Reply struct {
	// Status is the HTTP status, Code the tracker's error code or 0.
	Status, Code int
	// Message is the text of an error.
	Message string
	// Header has the headers that are compared, under lower-case names. An empty one is left out.
	Header map[string]string
	// Failure says in one bounded word why the tracker gave no response, such as a mapping.Reason. The other fields then mean
	// nothing.
	Failure string
	// Body is the JSON text of a successful response, nil when there is none. Of an error it has the members that have no field
	// here. See Body for the content of attachments.
	Body jsontext.Value
	// Long says that the body is longer than what is compared member by member, so that only its digest is compared.
	Long bool
}

// IsBroken reports whether the tracker does not work, at least for the moment. A refusal is a response.
func (r Reply) IsBroken() bool {
	return r.Failure != "" || r.Status >= http.StatusInternalServerError || r.Code == mapping.CodeTrackerFailure
}

// ErrorReply is that of an error of the tracker's. Clients get its other members as they are, so that they are compared as a
// body is.
func ErrorReply(err *mapping.Error) Reply {
	others := err.Extra.Clone()
	if err.Documentation != "" {
		others.SetText("documentation", err.Documentation)
	}
	return Reply{
		Status: cmp.Or(err.Received, err.Status), Code: err.Code, Message: err.Message, Body: others.AppendJSON(nil),
	}
}

// Body gives the Reply.Body of a document that jsonblob.Split took apart. In the place of each payload it has size and digest,
// so that content of any length is compared by them. The blobs may be closed afterwards.
func Body(skeleton jsontext.Value, payloads []*jsonblob.Blob) (jsontext.Value, error) {
	marks := make([]*jsonblob.Blob, len(payloads))
	for i, payload := range payloads {
		sum, err := payload.Digest()
		if err != nil {
			return nil, fmt.Errorf("keep a body: %w", err)
		}
		content := contentText(payload.Size(), string(sum[:]), false)
		marks[i] = jsonblob.BlobFromRaw(append([]byte(contentKey), content...))
	}
	joined, err := jsonblob.Join(skeleton, marks)
	if err != nil {
		return nil, fmt.Errorf("keep a body: %w", err)
	}
	var body bytes.Buffer
	_, err = joined.WriteTo(&body)
	return body.Bytes(), err
}

// contentKey begins what stands for content in a body. A tracker that sent it could only make its own content seem equal.
const contentKey = "portico: size and digest of content\x00"

// contentText describes content for a difference. isText says that it is not base64, so that size and digest are those of the
// text.
func contentText(size int64, sum string, isText bool) jsontext.Value {
	text := ""
	if isText {
		text = `,"text":true`
	}
	return fmt.Appendf(nil, `{"size":%d,"sha256":"%x"%s}`, size, sum, text)
}

// contentOf describes the content that a JSON string is or stands for.
func contentOf(raw jsontext.Value) jsontext.Value {
	text := unquoted(raw)
	decoded, _ := base64.StdEncoding.DecodeString(string(text)) // what is not base64 is no mark
	if content, isMark := bytes.CutPrefix(decoded, []byte(contentKey)); isMark {
		return content
	}
	return contentText(int64(len(text)), hash(string(text)), true)
}
