package proxy

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"

	"portico/mapping"
)

// answerLimit is how much of an answer is looked at. Those to calls that change flag types are short.
const answerLimit = 64 << 10

// loginField is how a page of the tracker writes the field for the password. Every page has it for who is not logged in, and
// none for who is; in what users wrote the tracker escapes quotes.
const loginField = `name="Bugzilla_password"`

// outcome tells by an answer what became of a request that may change flag types. It does so as an error does of an
// operation: nil says that it was carried out.
func (c *changingCall) outcome(response *http.Response) error {
	coding := response.Header.Get("Content-Encoding")
	switch status := response.StatusCode; {
	case refuses(status):
		return notLetIn(status)
	case status/100 != 2, coding != "" && !strings.EqualFold(coding, "identity"):
		return unclear(nil)
	}
	head, err := peek(response)
	switch {
	case err != nil:
		return unclear(err)
	case c.script == scriptFlagTypes:
		return pageOutcome(head)
	case len(head) > answerLimit:
		return unclear(nil)
	case c.script == scriptXMLRPC:
		return c.xmlOutcome(head)
	default:
		return c.jsonOutcome(head)
	}
}

// refuses tells the statuses by which a tracker, or a web server before it, does not let a request in.
func refuses(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusLengthRequired, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusExpectationFailed, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return false
}

// peek reads the beginning of an answer, one byte more than answerLimit at most, and leaves the answer as it was.
func peek(response *http.Response) ([]byte, error) {
	body := response.Body
	head, err := io.ReadAll(io.LimitReader(body, answerLimit+1))
	rest := io.Reader(body)
	if err != nil {
		rest = broken{err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), body}
	return head, err
}

// broken is where an answer broke off.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// pageOutcome judges a page. Those for people say what went wrong with status 200 and in many languages, so only what asks for
// a login surely says that nothing was done.
func pageOutcome(page []byte) error {
	switch {
	case len(page) == 0:
		return unclear(nil)
	case bytes.Contains(page, []byte(loginField)):
		return notLetIn(http.StatusOK)
	}
	return nil
}

func (c *changingCall) jsonOutcome(answer []byte) error {
	members, err := mapping.ParseMembers(answer)
	if err != nil {
		return unclear(err)
	}
	said, result := members.Get("error"), members.Get("result")
	switch {
	case said != nil && said.Kind() != 'n':
		failed, _ := mapping.ParseMembers(said) // without a code it is an error all the same
		return c.failed(strings.Trim(string(failed.Get("code")), `"`))
	case result == nil || result.Kind() == 'n':
		return unclear(nil)
	}
	return nil
}

// xmlAnswer is the answer to an XML-RPC call, as far as it matters here.
type xmlAnswer struct {
	XMLName xml.Name  `xml:"methodResponse"`
	Params  *struct{} `xml:"params"`
	Fault   *struct {
		Members []struct {
			Name  string `xml:"name"`
			Value struct {
				Typed struct {
					Text string `xml:",chardata"`
				} `xml:",any"`
			} `xml:"value"`
		} `xml:"value>struct>member"`
	} `xml:"fault"`
}

func (c *changingCall) xmlOutcome(answer []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(answer))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	var read xmlAnswer
	if err := decoder.Decode(&read); err != nil {
		return unclear(err)
	}
	switch {
	case read.Fault != nil:
		code := ""
		for _, each := range read.Fault.Members {
			if each.Name == "faultCode" {
				code = strings.TrimSpace(each.Value.Typed.Text)
			}
		}
		return c.failed(code)
	case read.Params == nil:
		return unclear(nil)
	}
	return nil
}

// failed judges the error of a call by its code. Those from 32000 on are of the protocol itself, and of credentials that cannot
// be read (wire-facts.md, section 1, Credentials): they come before anything is done. So does every error of a call that was
// beyond understanding here. What the other codes mean is known where those of operations are judged.
func (c *changingCall) failed(code string) error {
	number, _ := strconv.Atoi(code)
	if magnitude := max(number, -number); !c.named || magnitude >= mapping.CodeJSON && magnitude <= 1<<15 {
		return notLetIn(http.StatusOK)
	}
	return &mapping.Error{Code: number, Status: mapping.StatusOf(number), Message: "The tracker refused the call."}
}

// notLetIn says that nothing was done.
func notLetIn(status int) error {
	return &mapping.Error{Status: status, Message: "The request was not let in.", Reason: mapping.ReasonWebServer}
}

// unclear says that nobody knows what was done.
func unclear(cause error) error {
	failed := failure(mapping.CodeTimeout, mapping.ReasonBadAnswer, "The answer does not tell what was done.", cause)
	failed.Unknown = true
	return failed
}
