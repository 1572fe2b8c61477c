package tracker

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// columnLength is how many characters the database keeps of file name, summary and content type.
const columnLength = 255

// legalType is what a content type must look like (tracker-behaviour.md section 6).
var legalType = regexp.MustCompile(`^(?i:(application|audio|font|image|message|model|multipart|text|video)/[a-z0-9_.+-]+(;\s*charset=[a-z0-9_+-]+)?)\n?$`)

const patchType = "text/plain"

// checkContentType gives text/plain for a patch, whatever was sent. Only BMO and Harmony take fonts.
func checkContentType(v any, patch, fonts bool) (string, error) {
	if patch {
		return patchType, nil
	}
	s := clean(text(v))
	if !legalType.MatchString(s) || strings.HasPrefix(strings.ToLower(s), "font/") && !fonts {
		return "", fail(codeContentType, "'%s' is no valid content type", s)
	}
	return s, nil
}

// checkFileName cuts the path off and keeps the end of what is too long. What is missing has a code that depends on the operation.
func checkFileName(v any, missing int) (string, error) {
	s := clean(text(v))
	if !truth(s) {
		return "", fail(missing, "an attachment needs a file name")
	}
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	if r := []rune(s); len(r) > columnLength {
		s = string(r[len(r)-columnLength:])
	}
	return s, nil
}

func checkSummary(v any) (string, error) {
	s := trim(text(v))
	if !truth(s) {
		return "", fail(codeSummary, "an attachment needs a summary")
	}
	return s, nil
}

// checkPrivate lets only insiders set or change privacy.
func (c *call) checkPrivate(v any, was bool) (bool, error) {
	if private := truth(v); private == was || c.insider(c.user) {
		return private, nil
	}
	return false, fail(codeNotInsider, "only insiders may make attachments private or public")
}

// checkData decodes the content and checks its size.
func (c *call) checkData(v any) ([]byte, error) {
	content := decodeBase64(text(v))
	if len(content) == 0 {
		return nil, fail(codeNoData, "the attachment is empty")
	}
	if limit := c.server.options.Params.MaxAttachmentSize; len(content) > limit*1024 {
		return nil, fail(codeTooLarge, "the attachment has %d bytes; the limit is %d KB", len(content), limit)
	}
	return content, nil
}

// decodeBase64 is lenient: what is not of the alphabet is skipped, missing padding is fine, and nothing is read after
// padding (tracker-behaviour.md section 6, data).
func decodeBase64(s string) []byte {
	if b, err := base64.StdEncoding.DecodeString(s); err == nil {
		return b
	}
	kept := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			kept = append(kept, c)
		case c == '=':
			return decodeRaw(kept)
		}
	}
	return decodeRaw(kept)
}

// decodeRaw drops a single trailing character, which stands for no whole byte.
func decodeRaw(kept []byte) []byte {
	if len(kept)%4 == 1 {
		kept = kept[:len(kept)-1]
	}
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(kept)))
	n, _ := base64.RawStdEncoding.Decode(out, kept)
	return out[:n]
}
