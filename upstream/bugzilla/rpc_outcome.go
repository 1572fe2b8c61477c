package bugzilla

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// loginField is how a page of the tracker writes the field for the password. Every page has it for callers who are not logged in, and
// none for those who are; in what users wrote the tracker escapes quotes.
var loginField = regexp.MustCompile(`name="Bugzilla_password"`)

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
	switch script {
	case scriptFlagTypes:
		return pageOutcome(body)
	case scriptXMLRPC:
		return xmlOutcome(body)
	}
	return jsonOutcome(body)
}

// pageOutcome judges a page of any length, since a page that asks for a login repeats what it was sent. Those for people say what went
// wrong with status 200 and in many languages, so only one that asks for a login surely says that nothing was done.
func pageOutcome(page io.Reader) error {
	r := bufio.NewReader(page)
	_, empty := r.Peek(1)
	if loginField.MatchReader(r) {
		return notLetIn(http.StatusOK)
	}
	if _, err := r.ReadByte(); empty != nil || !errors.Is(err, io.EOF) {
		return Unclear(err)
	}
	return nil
}

// jsonOutcome judges the response to a JSON-RPC call, or to a list of calls. It may have any length, since it repeats the id of the call.
func jsonOutcome(response io.Reader) error {
	var done, refused bool
	var within, code string
	level := 1
	scan := &jsonScan{visit: func(depth int, name, value string) {
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
	}}
	if _, err := jsonblob.Copy(scan, response); err != nil || !scan.closed() {
		return Unclear(err)
	}
	return callOutcome(done, refused, code)
}

// maxXML is how much of a response of XML-RPC is looked at: it repeats nothing of a call by a caller who is not let in.
const maxXML = 4 << 20

// xmlOutcome judges the response to an XML-RPC call.
func xmlOutcome(body io.Reader) error {
	var response xmlNode
	if err := xml.NewDecoder(io.LimitReader(body, maxXML)).Decode(&response); err != nil {
		return Unclear(err)
	}
	fault, refused := response.child("fault").child("value").value("").(map[string]any)
	return callOutcome(len(response.child("params").Children) > 0, refused, fmt.Sprint(fault["faultCode"]))
}

// callOutcome says what became of a call. Error codes from 32000 on are of the protocol itself, and of credentials that cannot
// be read (tracker-behaviour.md section 1, Credentials): they come before anything is done. So do those by which the older interfaces say
// that a call cannot be read: Client, and codes from 100000 to 100499 (section 1, Errors). What the other codes mean is known where
// those of operations are judged.
func callOutcome(done, refused bool, code string) error {
	number, _ := strconv.Atoi(code)
	magnitude := max(number, -number)
	switch {
	case done:
		return nil
	case !refused:
		return Unclear(nil)
	case code == "Client", number >= 100000 && number < mapping.CodeTrackerFailure, magnitude >= mapping.CodeJSON && magnitude <= 1<<15:
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
	failed := mapping.NewError(mapping.CodeTimeout, mapping.ReasonBadResponse, "The response does not tell what was done.")
	failed.Unknown, failed.Err = true, cause
	return failed
}
