package canary

import (
	"encoding/hex"

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
	// is set. Content of attachments may be in it as it is, or set aside: then a
	// placeholder of mapping.Split stands for it, and Payloads has it.
	Body jsontext.Value `json:"body,omitempty"`
	// Payloads are in the order of mapping.Document.Blobs.
	Payloads []Payload `json:"payloads,omitempty"`
	// Digest is set instead of Body for an answer beyond the cap.
	Digest *Payload `json:"digest,omitempty"`
}
