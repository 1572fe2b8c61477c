package recording

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// isKnownName reports whether what stands under a name is kept: the members, elements and parameters of interface.md, of the recorded
// exchanges, and of the tracker's other calls about bugs. A value under any other name may be a credential.
func isKnownName(name string) bool {
	const names = `
		id ids names name type target_type description values inclusions exclusions sortkey is_active is_requestable
		is_requesteeble is_specifically_requestable is_multiplicable cc_list grant_group request_group grant_group_id
		request_group_id flag_id flagtypes flagtypes.name changes added removed

		attachment attachments attachment_ids attachment_id bug bugs bug_id data size creation_time last_change_time file_name
		filename summary content_type mimetype is_private is_obsolete is_patch isprivate isobsolete ispatch creator attacher
		flags bug_flags obsoletes comment minor_update setter requestee status type_id creation_date modification_date new

		product component include_fields exclude_fields callback limit offset order quicksearch new_since

		alias all add remove set assigned_to author blocks body cc classification comments comment_id count depends_on dupe_of
		edit_count groups is_cc_accessible is_confirmed is_creator_accessible is_open keywords op_sys platform priority
		qa_contact raw_text rep_platform resolution see_also severity tags target_milestone text time url version whiteboard

		error code message documentation method jsonrpc faultCode faultString requestee_id setter_id`
	return slices.Contains(strings.Fields(names), name)
}

var (
	// credentialName matches the names of credentials (tracker-behaviour.md section 1, Credentials, and what else trackers and
	// clients call them), without what is neither letter nor digit.
	credentialName = regexp.MustCompile(`passw|passphrase|passcode|pwd|secret|token|apikey|accesskey|privatekey|cookie|credential|authorization|session|^(?:pass|key|auth|sudo|otp|jwt)$`)
	loginName      = regexp.MustCompile(`^x?(?:bugzilla|new)?login(?:name)?$`)
	isDigits       = regexp.MustCompile(`^\d+$`)
)

// isCredential reports whether what stands under a name is a credential. It is less exact about names than trackers are: they
// call some by names that only their extensions know.
func isCredential(name string) bool { return credentialName.MatchString(letters(name)) }

// isLogin reports whether what stands under a name is a login name.
func isLogin(name string) bool { return loginName.MatchString(letters(name)) }

// letters gives the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// below names what stands in a member of a value that has a name itself. What is in a credential is one. Members that are called by
// ids, products and components tell nothing of what is in them.
func below(name, member string) string {
	if isCredential(name) || isLogin(name) || name == "inclusions" || name == "exclusions" || isDigits.MatchString(member) {
		return name
	}
	return member
}
