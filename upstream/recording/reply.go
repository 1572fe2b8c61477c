package recording

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/upstream/canary"
)

// replyOf gives what is compared of an answer. Pages are compared by their type only: their text is another each time.
func replyOf(a Response) canary.Reply {
	reply := canary.Reply{Status: a.Status}
	kind, _, _ := mime.ParseMediaType(a.Headers["content-type"])
	if kind != "" {
		reply.Header = map[string]string{"content-type": kind}
	}
	switch body := unframed(a.Body); {
	case a.HTML || kind == "text/html" || len(a.Body) == 0 && a.Size == 0:
	case a.long != nil:
		reply.Digest = a.long
	case a.Size > 0 && isText(kind): // it was too long, or could not be read
	case a.Size > 0:
		reply.Digest = &canary.Payload{Size: a.Size, SHA256: a.SHA256}
	case isErrorOf(body, &reply):
	case isJSON(body):
		reply.Body = body
	default:
		reply.Digest = digestOf(a.Body)
	}
	return reply
}

// isAnswer tells an answer of the tracker's from what a server before it says, such as a page that asks for a login or tells
// of maintenance: all servers say the same of that. Who asks for pages gets some from the tracker.
func isAnswer(r Request, a Response, reply canary.Reply) bool {
	if a.long != nil {
		return isText(reply.Header["content-type"])
	}
	page := reply.Header["content-type"] == "text/html" && strings.Contains(headerOf(r.Headers, "Accept"), "text/html")
	return reply.Body != nil || reply.Status == http.StatusNotModified || page && reply.Status < http.StatusInternalServerError
}

func digestOf(body []byte) *canary.Payload {
	sum := sha256.Sum256(body)
	return &canary.Payload{Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
}

// unframed takes JSON out of the frame of a callback.
func unframed(body []byte) []byte {
	if parts := callbackFrame.FindSubmatch(body); parts != nil {
		return parts[2]
	}
	return body
}

// isErrorOf reads the tracker's error body, which may come with the status of a success (wire-facts.md, section 1, Errors).
func isErrorOf(body []byte, reply *canary.Reply) bool {
	var said struct {
		Error   any             `json:"error"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil || said.Error != true {
		return false
	}
	code, err := strconv.Atoi(string(said.Code))
	if err != nil {
		return false
	}
	others, err := mapping.ParseMembers(body)
	if err != nil {
		return false
	}
	others.Take("error")
	others.Take("code")
	if said.Message != "" { // null, an empty one and none are not the same
		others.Take("message")
	}
	reply.Code, reply.Message, reply.Body = code, said.Message, others.AppendJSON(nil)
	return true
}

// incomparable tells what a recording lacks of an answer: then the new one is compared without it.
func incomparable(recorded Response) bool {
	kind, _, _ := mime.ParseMediaType(recorded.Headers["content-type"])
	return recorded.HTML || recorded.Size > 0 && (isText(kind) || recorded.SHA256 == "") || recorded.Length > 0
}

// isRead tells requests that may be made as often as one likes.
func isRead(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
