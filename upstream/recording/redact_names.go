package recording

import (
	"slices"
	"strings"
	"unicode"
)

// secretWords are in the names of parameters and members that carry a credential, whatever stands around them
// (wire-facts.md, section 1, Credentials, and what else trackers and clients call them). Letters and digits only.
var secretWords = []string{
	"passw", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "accesskey", "privatekey", "cookie", "credential", "authorization", "session",
}

// secretNames are whole names of the same kind.
var secretNames = []string{"pass", "key", "auth", "sudo", "otp", "jwt"}

// isSecret tells whether what stands under a name is a credential. It is much less exact about names than trackers are: a
// credential that stays is worse than a value that goes.
func isSecret(name string) bool {
	name = letters(name)
	return slices.Contains(secretNames, name) || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// isLogin tells whether what stands under a name says who somebody is.
func isLogin(name string) bool {
	name, _, _ = strings.Cut(name, "[") // login[] is one too
	return slices.Contains([]string{"login", "bugzillalogin", "loginname", "newlogin"}, letters(name))
}

// letters gives the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

func plainName(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(name, " \t\r\n\x00"), "-", "_"))
}

// hide gives the placeholder for what stands under a name, and tells whether there is one at all.
func (s *sheet) hide(name, value string) (string, bool) {
	switch {
	case isSecret(name):
		return s.caller(value), true
	case isLogin(name):
		return s.login(value), true
	case s.isShort(value):
		return s.caller(value), true
	}
	return "", false
}

// fewest is the length in bytes below which nothing is a credential that any tracker would take.
const fewest = 4

// isShort tells whether a value is a credential that is too short to be looked for inside of texts. Such a one goes where
// it is the whole value, as when a form asks for a new password twice.
func (s *sheet) isShort(value string) bool {
	value = strings.TrimSpace(value)
	return len(value) >= fewest && len(value) < shortest && slices.Contains(s.secrets, value)
}
