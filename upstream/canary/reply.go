package canary

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Payload is what is kept of an attachment's content, or of a whole answer that
// is too long to be compared member by member.
type Payload struct {
	// Size is in bytes: of the decoded content, or of the text where it is Text.
	Size int64 `json:"size"`
	// SHA256 is the hexadecimal digest of the same bytes.
	SHA256 string `json:"sha256"`
	// Text says that the content was no canonical base64, so that Size and SHA256
	// are those of the text as it was written.
	Text bool `json:"text,omitempty"`
}

// PayloadOf gives what is kept of a payload that mapping set aside.
func PayloadOf(blob *mapping.Blob) Payload {
	digest := blob.Digest()
	return Payload{Size: blob.Size(), SHA256: hex.EncodeToString(digest[:]), Text: !blob.Base64()}
}

// Reply is one side of a comparison: all of an answer that is compared.
type Reply struct {
	// Status is the HTTP status, Code the tracker's error code or 0.
	Status int `json:"status"`
	Code   int `json:"code,omitempty"`
	// Message is the text of an error.
	Message string `json:"message,omitempty"`
	// Header has the headers that are compared, under lower-case names.
	Header map[string]string `json:"header,omitempty"`
	// Failure says in one bounded word why there is no answer of the tracker's, such
	// as a mapping.Reason. The other fields then mean nothing.
	Failure string `json:"failure,omitempty"`
	// Body is the JSON text of a successful answer, nil when there is none or Digest
	// is set. Of an error it has the members that are not said elsewhere. Content of
	// attachments may be in it as it is, or set aside: then a placeholder of
	// mapping.Split stands for it, and Payloads has it.
	Body jsontext.Value `json:"body,omitempty"`
	// Payloads are in the order of mapping.Document.Blobs.
	Payloads []Payload `json:"payloads,omitempty"`
	// Digest is set instead of Body for an answer beyond the cap.
	Digest *Payload `json:"digest,omitempty"`
}

// isBroken tells a tracker that does not work, for the moment at least, from one that answers, be it with a refusal.
func (r Reply) isBroken() bool {
	return r.Failure != "" || r.Status >= http.StatusInternalServerError || r.Code == mapping.CodeTrackerFailure
}

// errorReply is that of an error of the tracker's. Clients get its other members as
// they are, so that they are compared as a body is.
func errorReply(said *mapping.Error) Reply {
	others := said.Extra.Clone()
	if said.Documentation != "" {
		others.SetText("documentation", said.Documentation)
	}
	return Reply{
		Status: cmp.Or(said.Received, said.Status), Code: said.Code, Message: said.Message, Body: others.AppendJSON(nil),
	}
}

// payloadOfText gives what mapping would have kept of a JSON string, had it set it
// aside: canonical base64 is decoded, however its characters are written, and any
// other text is taken as written.
func payloadOfText(raw jsontext.Value) Payload {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		escaped := newContentSum()
		escaped.write(text)
		return escaped.payload()
	}
	content := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(content, text)
	if err != nil || base64.StdEncoding.EncodedLen(n) != len(text) {
		return textPayload(text)
	}
	sum := sha256.Sum256(content[:n])
	return Payload{Size: int64(n), SHA256: hex.EncodeToString(sum[:])}
}

func textPayload(text []byte) Payload {
	sum := sha256.Sum256(text)
	return Payload{Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), Text: true}
}

// raw is the payload as a JSON object, for a difference.
func (p Payload) raw() jsontext.Value {
	text := fmt.Appendf(nil, `{"size":%d,"sha256":"%s"`, p.Size, p.SHA256)
	if p.Text {
		text = append(text, `,"text":true`...)
	}
	return append(text, '}')
}
