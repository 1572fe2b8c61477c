package bugzilla

import (
	"io"
	"net/http"
	"strconv"
	"strings"

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
	case script == scriptFlagTypes:
		return pageOutcome(body)
	case script == scriptXMLRPC:
		return xmlOutcome(body)
	default:
		return jsonOutcome(body)
	}
}

// pageOutcome judges a page. Those for people say what went wrong with status 200 and in many languages, so only one that asks for
// a login surely says that nothing was done.
func pageOutcome(page io.Reader) error {
	empty, login := true, false
	err := eachPiece(page, func(piece string) {
		empty, login = false, login || strings.Contains(piece, loginField)
	})
	switch {
	case err != nil || empty:
		return Unclear(err)
	case login:
		return notLetIn(http.StatusOK)
	}
	return nil
}

// jsonOutcome judges the response to a JSON-RPC call, or to a list of calls.
func jsonOutcome(response io.Reader) error {
	level, done, refused, within, code := 1, false, false, "", ""
	whole, err := WalkJSON(response, func(depth int, name, value string) {
		switch {
		case depth == 0 && value == "[":
			level = 2
		case depth == level:
			within = name
			done = done || name == "result" && value != "null"
			refused = refused || name == "error" && value != "null"
		case depth == level+1 && within == "error" && name == "code":
			code = value
		}
	})
	return callOutcome(whole, done, refused, code, err)
}

// xmlOutcome judges the response to an XML-RPC call.
func xmlOutcome(response io.Reader) error {
	done, refused, member, code := false, false, "", ""
	whole, err := walkXML(response, func(depth int, name, text string) {
		switch {
		case depth == 2 && name == "params":
			done = true
		case depth == 2 && name == "fault":
			refused = true
		case name == "name":
			member = text
		case member == "faultCode" && text != "":
			code, member = text, ""
		}
	})
	return callOutcome(whole, done, refused, code, err)
}

// callOutcome says what became of a call. Error codes from 32000 on are of the protocol itself, and of credentials that cannot
// be read (tracker-behaviour.md section 1, Credentials): they come before anything is done. What the other codes mean is known where
// those of operations are judged.
func callOutcome(whole, done, refused bool, code string, err error) error {
	number, _ := strconv.Atoi(code)
	magnitude := max(number, -number)
	switch {
	case err != nil || !whole || !done && !refused:
		return Unclear(err)
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
	return &mapping.Error{
		Code: mapping.CodeTimeout, Status: mapping.StatusOf(mapping.CodeTimeout), Reason: mapping.ReasonBadResponse, Unknown: true,
		Message: "The response does not tell what was done.", Err: cause,
	}
}
