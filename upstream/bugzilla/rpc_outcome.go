package bugzilla

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"portico/mapping"
)

// loginField is how a page of the tracker writes the field for the password. Every page has it for callers who are not logged in, and
// none for those who are; in what users wrote the tracker escapes quotes.
const loginField = `name="Bugzilla_password"`

// Outcome says by a response what became of a request to a script that may change flag types. It does so as an error does of an
// operation: nil says that the request was carried out. With a status of 4xx the tracker, or a web server before it, did not let the
// request in.
func Outcome(script string, status int, header http.Header, body io.Reader) error {
	coding := header.Get("Content-Encoding")
	switch {
	case status/100 == 4 && status != http.StatusRequestTimeout:
		return notLetIn(status)
	case status/100 != 2, coding != "" && !strings.EqualFold(coding, "identity"):
		return Unclear(nil)
	}
	text, err := io.ReadAll(io.LimitReader(body, maxJudged))
	switch {
	case err != nil:
		return Unclear(err)
	case script == scriptFlagTypes:
		return pageOutcome(text)
	case script == scriptXMLRPC:
		return xmlOutcome(text)
	default:
		return jsonOutcome(text)
	}
}

// maxJudged is how much of a response is looked at. That of a flag type write is short.
const maxJudged = 1 << 20

// pageOutcome judges a page. Those for people say what went wrong with status 200 and in many languages, so only one that asks for
// a login surely says that nothing was done.
func pageOutcome(page []byte) error {
	switch {
	case len(page) == 0:
		return Unclear(nil)
	case bytes.Contains(page, []byte(loginField)):
		return notLetIn(http.StatusOK)
	}
	return nil
}

// jsonOutcome judges the response to a JSON-RPC call, or to a list of calls.
func jsonOutcome(text []byte) error {
	done, refused, code := false, false, any(nil)
	for _, each := range listOf(text) {
		var response struct {
			Result any `json:"result"`
			Error  any `json:"error"`
		}
		if err := json.Unmarshal(each, &response); err != nil {
			return Unclear(err)
		}
		done, refused = done || response.Result != nil, refused || response.Error != nil
		if members, ok := response.Error.(map[string]any); ok {
			code = members["code"]
		}
	}
	return callOutcome(done, refused, code)
}

// xmlOutcome judges the response to an XML-RPC call.
func xmlOutcome(text []byte) error {
	var response xmlNode
	if err := xml.Unmarshal(text, &response); err != nil {
		return Unclear(err)
	}
	fault, refused := response.child("fault").child("value").value("").(map[string]any)
	return callOutcome(len(response.child("params").Children) > 0, refused, fault["faultCode"])
}

// callOutcome says what became of a call. Error codes from 32000 on are of the protocol itself, and of credentials that cannot
// be read (tracker-behaviour.md section 1, Credentials): they come before anything is done. What the other codes mean is known where
// those of operations are judged.
func callOutcome(done, refused bool, code any) error {
	number, _ := strconv.Atoi(fmt.Sprint(code))
	magnitude := max(number, -number)
	switch {
	case !done && !refused:
		return Unclear(nil)
	case done:
		return nil
	case magnitude >= mapping.CodeJSON && magnitude <= 1<<15:
		return notLetIn(http.StatusOK)
	}
	return &mapping.Error{Code: number, Status: mapping.StatusOf(number), Message: "The tracker refused the call."}
}

// notLetIn says that nothing was done.
func notLetIn(status int) error {
	return &mapping.Error{Status: status, Message: "The request was not let in.", Reason: mapping.ReasonWebServer}
}

// Unclear is the outcome of a request whose response does not tell what was done.
func Unclear(cause error) error {
	failed := own(mapping.CodeTimeout, mapping.ReasonBadResponse, "The response does not tell what was done.")
	failed.Unknown, failed.Err = true, cause
	return failed
}
