package fuzz

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"portico/mapping"
)

// Class is one way in which a request can be malformed or odd.
type Class struct {
	// Group and Name say what it is; both together are unique.
	Group, Name string
	// Types are the content types to send it with; nil is JSON's own and none at all.
	Types []string
	// On are the operations it is sent to; nil is all that write.
	On []mapping.Operation
	// Raw gives everything after the request line and the header Host.
	Raw func(Target, string) string
	// Path replaces the path of the target, when it is not empty.
	Path func(Target) string
	// Cut says that the client closes its side of the connection when it has sent everything.
	Cut bool
	// Shown is what the table tells of the request.
	Shown string
	// Outcome is the answer; By has those that differ by operation.
	Outcome Outcome
	By      map[mapping.Operation]Outcome
}

// Outcome is the answer to a request. The zero value means that the request is understood and that the tracker is asked.
type Outcome struct{ Status, Code int }

// Accepted tells whether the tracker is asked.
func (o Outcome) Accepted() bool { return o == Outcome{} }

// String gives the outcome as the table has it.
func (o Outcome) String() string {
	if o.Accepted() {
		return "understood"
	}
	return fmt.Sprintf("%d, code %d", o.Status, o.Code)
}

// OutcomeOn is the answer that an operation gives.
func (c Class) OutcomeOn(operation mapping.Operation) Outcome {
	if outcome, ok := c.By[operation]; ok {
		return outcome
	}
	return c.Outcome
}

// SentTo tells whether the class is sent to an operation.
func (c Class) SentTo(operation mapping.Operation) bool {
	return c.On == nil || slices.Contains(c.On, operation)
}

// ContentTypes are the types to send the class with; an empty one is no header.
func (c Class) ContentTypes() []string {
	if c.Types == nil {
		return []string{"application/json", ""}
	}
	return c.Types
}

// Request gives the bytes to send, for a server that closes the connection after its answer.
func (c Class) Request(to Target, contentType string) string {
	path := to.Path
	if c.Path != nil {
		path = c.Path(to)
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: portico.example.com\r\nConnection: close\r\nX-BUGZILLA-API-KEY: some-key\r\n%s",
		to.Method, path, c.Raw(to, contentType))
}

// Classes are all classes, group by group.
func Classes() []Class {
	return slices.Concat(
		texts("Structure", structures()), texts("Separators", separators()), texts("Literals", literals()), values("Numbers", numbers()), values("Strings", strs()),
		texts("Member names", names()), values("Nesting and size", nestings()), texts("Encodings", encodings()), fields(),
		urlencoded(), multiparts(), framings(), headers(), addresses(),
	)
}

// with puts the headers that a body needs before it.
func with(contentType, body string) string {
	header := ""
	if contentType != "" {
		header = "Content-Type: " + contentType + "\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
}

// invalid is the answer to what is not JSON, as a tracker gives it (tracker-behaviour.md section 1, Request bodies).
func invalid() Outcome { return Outcome{400, mapping.CodeJSON} }

func tooLarge() Outcome { return Outcome{413, mapping.CodeTooLarge} }

// onCreates gives an answer of creates, which miss what they require where an update finds nothing to do.
func onCreates() map[mapping.Operation]Outcome {
	missing := Outcome{400, mapping.CodeRequired}
	return map[mapping.Operation]Outcome{mapping.OpCreateFlagType: missing, mapping.OpCreateAttachment: missing}
}

// sample is one row of a table of JSON: what it is, its text, and whether it is understood.
type sample struct {
	name, text string
	outcome    Outcome
}

// texts makes classes of whole bodies.
func texts(group string, samples []sample) []Class {
	var classes []Class
	for _, s := range samples {
		class := Class{Group: group, Name: s.name, Shown: shown(s.text), Outcome: s.outcome}
		class.Raw = func(to Target, contentType string) string {
			return with(contentType, strings.ReplaceAll(s.text, good, to.Members))
		}
		if s.outcome.Accepted() && !strings.Contains(s.text, good) {
			class.By = onCreates()
		}
		classes = append(classes, class)
	}
	return classes
}

// good stands for the members of a good body.
const good = "…"

// values makes classes of a member that the interface does not know, in a body that is good but for it.
func values(group string, samples []sample) []Class {
	for i := range samples {
		samples[i].text = `{` + good + `,"x":` + samples[i].text + `}`
	}
	return texts(group, samples)
}

// shown shortens what a table cannot hold.
func shown(text string) string {
	const most = 60
	quoted := fmt.Sprintf("%+q", text)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	quoted = strings.ReplaceAll(quoted, `\u2026`, good)
	if len(quoted) > most {
		quoted = fmt.Sprintf("%s... (%d bytes)", strings.TrimRight(quoted[:most-20], `\`), len(text))
	}
	return quoted
}

// head is what stands before the table.
const head = `# Malformed and odd requests

Every row is sent over a socket to each of the four writing operations, JSON bodies with their content type and without one. The response
is an error in the tracker's shape with this status and code, and the tracker is never asked; or the request is understood, and the
tracker is asked once. What is understood is odd but has one meaning. ` + "`…`" + ` stands for the members of a request that is good but for the row.

This page is written by ` + "`go test ./test/fuzz -update`" + ` and checked by the tests there.
`

// WriteTable writes docs/evidence/malformed.md.
func WriteTable(out io.Writer) error {
	var page strings.Builder
	page.WriteString(head)
	group := ""
	for _, class := range Classes() {
		if class.Group != group {
			group = class.Group
			fmt.Fprintf(&page, "\n## %s\n\n| class | sent | response |\n|---|---|---|\n", group)
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", cell(class.Name), code(class.Shown), cell(class.answers()))
	}
	_, err := io.WriteString(out, page.String())
	return err
}

// answers tells the outcome, and where it differs by operation, which is which.
func (c Class) answers() string {
	where := map[string][]string{}
	var order []string
	for _, to := range Targets() {
		if !c.SentTo(to.Operation) {
			continue
		}
		text := c.OutcomeOn(to.Operation).String()
		if where[text] == nil {
			order = append(order, text)
		}
		where[text] = append(where[text], string(to.Operation))
	}
	if len(order) == 1 && c.On == nil {
		return order[0]
	}
	for i, text := range order {
		order[i] = strings.Join(where[text], ", ") + ": " + text
	}
	return strings.Join(order, "; ")
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// code shows a text as it is. A text with backticks has more of them around it.
func code(text string) string {
	if text == "" {
		return ""
	}
	fence := "`"
	if strings.Contains(text, "`") {
		fence = "``"
	}
	return fence + cell(text) + fence
}
