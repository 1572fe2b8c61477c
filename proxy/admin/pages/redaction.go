package pages

import (
	"encoding/json"
	"fmt"
)

// redaction tells whether an object stands for something that upstream/canary took out, and says so in words.
func redaction(object map[string]any) (string, bool) {
	if len(object) != 1 {
		return "", false
	}
	if object["content"] == "set aside" {
		return "‹content›", true
	}
	inner, _ := object["text"].(map[string]any)
	length, isNumber := inner["length"].(json.Number)
	digest, isText := inner["digest"].(string)
	switch {
	case isNumber && len(inner) == 1:
		return fmt.Sprintf("‹%s characters›", length), true
	case isNumber && isText && len(inner) == 2:
		return fmt.Sprintf("‹%s characters, #%s›", length, digest), true
	default:
		return "", false
	}
}
