package tracker

import (
	"fmt"
	"net/http"
)

// failure is an error that reaches the client, with its code (tracker-behaviour.md section 11).
type failure struct {
	code    int
	message string
}

func (f *failure) Error() string { return fmt.Sprintf("%s (code %d)", f.message, f.code) }

func fail(code int, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

// Codes of failures, named after what they mean.
const (
	codeParamRequired     = 50
	codeNotExist          = 51
	codeNotNumeric        = 52
	codeParamInvalid      = 53
	codeNotScalars        = 58
	codeBadBug            = 100
	codeNoBug             = 101
	codeHiddenBug         = 102
	codeHiddenProduct     = 106
	codeNotInsider        = 113
	codeCommentTooLong    = 114
	codeFlagStatus        = 129
	codeFlagDenied        = 130
	codeNoRequestee       = 131
	codeFlagNotUnique     = 132
	codeFlagTypeNotUnique = 133
	codeFlagTypeInactive  = 134
	codeBadLogin          = 300
	codeDisabled          = 301
	codeNotAllowed        = 304
	codeBadKey            = 306
	codeBadToken          = 307
	codeLoginRequired     = 410
	codeBadEmail          = 501
	codeTooLarge          = 600
	codeContentType       = 601
	codeFileName          = 603
	codeSummary           = 604
	codeNoData            = 606
	codeTypeName          = 1101
	codeTypeDescription   = 1102
	codeCCList            = 1103
	codeSortkey           = 1104
	codeTypeNotEditable   = 1105
	codeUser              = 32000
	codeBadCallback       = 32611
	codeNoResource        = 32614
	codeNoMethod          = 67399
	codeBadTarget         = 68000
	codeInternal          = 100500
)

// internal is the failure whose status is that of success (tracker-behaviour.md section 1, Errors).
func internal(format string, args ...any) *failure {
	return fail(codeInternal, "internal error: "+format, args...)
}

// status gives the HTTP status of a code (tracker-behaviour.md section 1, Errors). Success is the status that the operation would have had.
func (s *Server) status(code, success int) int {
	switch code {
	case codeInternal:
		return success
	case codeNotExist:
		if s.harmony() {
			return http.StatusBadRequest
		}
		return http.StatusNotFound
	case codeNoBug, codeNoResource:
		return http.StatusNotFound
	case codeHiddenBug, codeHiddenProduct, 109, 110, codeNotInsider, 115, 120, codeBadLogin, codeDisabled, 302, 303,
		codeNotAllowed, codeLoginRequired, 504, 505:
		return http.StatusUnauthorized
	case codeNotScalars:
		if s.bmo() {
			return http.StatusRequestEntityTooLarge
		}
	}
	return http.StatusBadRequest
}

// Failures that more than one operation knows.

func errNoProduct(name string) *failure {
	return fail(codeHiddenProduct, "the product '%s' is unknown or out of your sight", name)
}

func errLoginRequired() *failure {
	return fail(codeLoginRequired, "this needs a login")
}

func errUnknownMember(class, name string) *failure {
	return fail(codeNoMethod, "%s has no settable field '%s'", class, name)
}

func errNoObject(class, what string, value any) *failure {
	return fail(codeNotExist, "there is no %s with the %s '%s'", class, what, text(value))
}
