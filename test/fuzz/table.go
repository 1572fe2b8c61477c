package fuzz

import (
	"fmt"
	"io"
	"strings"
)

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
