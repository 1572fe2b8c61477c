package bugzilla

import (
	"net/http"

	"portico/mapping"
)

// SoundsWell tells whether an answer to a question for the version, of which the beginning is given, is one of a tracker that
// works. A page with status 200 is not: front ends show one while a tracker is away. What is refused is an answer.
func SoundsWell(status int, head []byte) bool {
	if status >= http.StatusBadRequest {
		return status < http.StatusInternalServerError
	}
	_, err := mapping.ParseMembers(head)
	return err == nil && status < http.StatusMultipleChoices
}
