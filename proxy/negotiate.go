package proxy

import (
	"math"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
)

// representation is the form in which one answer is written.
type representation struct {
	// contentType is the answer's; the page and the callback follow from it.
	contentType string
	// page wraps the JSON in HTML for people.
	page bool
	// callback is the name of a JSONP function.
	callback string
}

const typeJSON = "application/json; charset=UTF-8"

// offered are the exact types that a tracker negotiates, the preferred first (wire-facts.md, section 1, Representation).
var offered = []string{"application/json", "application/javascript", "text/javascript", "text/html"}

// negotiate picks the representation by Accept alone. Whatever is not one of the offered types, wildcards too, counts for
// nothing, and an answer is never refused. Each item without a weight, whatever its type, weighs a little less than the one before.
func negotiate(header http.Header) representation {
	accept := header["Accept"]
	if len(accept) == 0 || len(accept) == 1 && (accept[0] == "*/*" || accept[0] == offered[0]) {
		return representation{contentType: typeJSON}
	}
	best, most, weight := offered[0], math.Inf(-1), 1.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name := acceptName.FindString(part)
		if name == "" {
			continue
		}
		q := weight
		if given := acceptWeight.FindStringSubmatch(part); given != nil {
			if q, _ = strconv.ParseFloat(given[1], 64); q == 0 {
				continue // what is refused is not sent
			}
		} else {
			weight -= 0.001
		}
		if q > most && slices.Contains(offered, name) {
			best, most = name, q
		}
	}
	return representation{contentType: best + "; charset=UTF-8", page: best == "text/html"}
}

// How a tracker finds the name and the weight in an item of an Accept header.
var (
	acceptName   = regexp.MustCompile(`\S+/[^;]+`)
	acceptWeight = regexp.MustCompile(`q=(\d\.\d+|\d+)`)
)

// withCallback turns a representation into JSONP when the query asks for it. Two names are none.
func (as representation) withCallback(query parameters) (representation, error) {
	if len(query.all("callback")) > 1 {
		return as, badCallback()
	}
	return as.framed(query.first("callback"))
}

// framed turns a representation into JSONP; an empty name asks for nothing. It beats Accept (recorded as proto.jsonp.html); a
// name that could be more than a name is refused.
func (as representation) framed(callback string) (representation, error) {
	if callback == "" {
		return as, nil
	}
	if strings.Trim(callback, callbackCharacters) != "" {
		return as, badCallback()
	}
	return representation{contentType: "text/javascript; charset=UTF-8", callback: callback}, nil
}

func badCallback() *mapping.Error {
	return mapping.Refuse(mapping.CodeCallback, "The callback must be the name of a JavaScript function.")
}

const callbackCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]"

// plain tells whether the answer is nothing but the JSON text.
func (as representation) plain() bool { return !as.page && as.callback == "" }

// mediaType gives the type of a body without parameters; empty when there is none that can be read.
func mediaType(header http.Header) (name string, attributes map[string]string) {
	name, attributes, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		name, _, _ = strings.Cut(header.Get("Content-Type"), ";")
		return strings.ToLower(strings.TrimSpace(name)), nil
	}
	return name, attributes
}
