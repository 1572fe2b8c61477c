package recording

import (
	"net/http"
	"strings"

	"portico/mapping"
)

// OperationOf tells which of the seven operations a request stands for; empty is none of them. Slashes are collapsed as
// trackers do (wire-facts.md, section 1, Paths).
func OperationOf(method, target string) mapping.Operation {
	operation, _ := Segments(method, target)
	return operation
}

// Segments tells the same, with the parts of the path that say what is asked for: product and component, or an id.
func Segments(method, target string) (operation mapping.Operation, segments []string) {
	path, _, _ := strings.Cut(target, "?")
	all := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(all) < 2 || all[0] != "rest" && all[0] != "rest.cgi" {
		return "", nil
	}
	resource, segments, shape := all[1], all[2:], ""
	switch {
	case strings.HasSuffix(path, "/"):
	case resource == "flag_type":
		shape = method + " type" + strings.Repeat(" x", len(segments))
	case resource == "bug" && len(segments) == 2 && segments[1] == "attachment":
		shape = method + " list"
		segments = segments[:1]
	case resource == "bug" && len(segments) == 2 && segments[0] == "attachment":
		shape = method + " item"
		segments = segments[1:]
	}
	return byShape(shape), segments
}

func byShape(shape string) mapping.Operation {
	switch shape {
	case http.MethodGet + " type x", http.MethodGet + " type x x":
		return mapping.OpFlagTypes
	case http.MethodPost + " type":
		return mapping.OpCreateFlagType
	case http.MethodPut + " type x":
		return mapping.OpUpdateFlagTypes
	case http.MethodGet + " list":
		return mapping.OpBugAttachments
	case http.MethodGet + " item":
		return mapping.OpAttachment
	case http.MethodPost + " list":
		return mapping.OpCreateAttachment
	case http.MethodPut + " item":
		return mapping.OpUpdateAttachments
	}
	return ""
}
