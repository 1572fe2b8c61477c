package jsonblob

import "fmt"

// SyntaxKind says in which way a document was not acceptable.
type SyntaxKind int

// The kinds of SyntaxError. Those from SyntaxDuplicate to SyntaxSurrogate are allowed by RFC 8259 or left open there, and
// are refused because two parsers would understand such a document differently (RFC 7493).
const (
	SyntaxEmpty      SyntaxKind = iota + 1 // not one byte: some callers take that for {} (tracker-behaviour.md section 1)
	SyntaxTruncated                        // the text ends before the value does
	SyntaxUnexpected                       // a character that cannot stand there
	SyntaxNumber                           // a number spelt in a way that JSON does not have
	SyntaxControl                          // a control character in a string that is not escaped
	SyntaxEscape                           // an escape that JSON does not have
	SyntaxTrailing                         // something after the value
	SyntaxBOM                              // a byte order mark
	SyntaxDuplicate                        // the same member name twice in one object
	SyntaxUTF8                             // bytes that are not UTF-8
	SyntaxSurrogate                        // half a surrogate pair, escaped
	SyntaxBase64                           // the JSON is right, but a payload is not base64
)

// syntaxText is what each kind is called in an error message.
var syntaxText = [...]string{
	SyntaxEmpty:      "there is no text at all",
	SyntaxTruncated:  "the text ends too early",
	SyntaxUnexpected: "this character cannot stand here",
	SyntaxNumber:     "this is not how a number is written",
	SyntaxControl:    "a control character must be escaped",
	SyntaxEscape:     "there is no such escape",
	SyntaxTrailing:   "something follows the value",
	SyntaxBOM:        "a byte order mark is not allowed",
	SyntaxDuplicate:  "the object already has a member of this name",
	SyntaxUTF8:       "these bytes are not UTF-8",
	SyntaxSurrogate:  "half a surrogate pair is not a character",
	SyntaxBase64:     "this is not base64",
}

// SyntaxError says that a text is not JSON as Split takes it, or that a payload is not base64.
type SyntaxError struct {
	Offset int64 // of the byte where it shows, from the start of the text
	Kind   SyntaxKind
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("at byte %d: %s", e.Offset, syntaxText[e.Kind])
}
