package pages

import (
	"encoding/json"
	"fmt"
)

// redaction tells whether an object stands for a text that was taken out, and says so in words.
func redaction(object map[string]any) (string, bool) {
	inner, ok := object["text"].(map[string]any)
	if len(object) != 1 || !ok {
		return "", false
	}
	length, isNumber := inner["length"].(json.Number)
	digest, isText := inner["digest"].(string)
	if len(inner) != 2 || !isNumber || !isText {
		return "", false
	}
	return fmt.Sprintf("‹%s characters, #%s›", length, digest), true
}
