package tracker

import (
	"slices"
	"strconv"
	"strings"
)

// bug finds a bug by id or alias and checks that the caller sees it (tracker-behaviour.md section 5 and 6).
func (c *call) bug(v any) (*bug, error) {
	given := trim(text(v))
	b, err := c.anyBug(given)
	if err != nil {
		return nil, err
	}
	if !c.tx.seesBug(c.user, b) {
		hint := ""
		if c.user == nil {
			hint = " A login may help."
		}
		return nil, fail(codeHiddenBug, "bug #%s is out of your sight.%s", given, hint)
	}
	return b, nil
}

// bugsOf finds all bugs of a list of ids and aliases.
func (c *call) bugsOf(ids []any) ([]*bug, error) {
	bugs := make([]*bug, len(ids))
	for i, id := range ids {
		var err error
		if bugs[i], err = c.bug(id); err != nil {
			return nil, err
		}
	}
	return bugs, nil
}

// bugs finds the bugs that the parameter ids lists.
func (c *call) bugs() ([]*bug, error) {
	ids, err := c.idList("ids")
	if err != nil {
		return nil, err
	}
	return c.bugsOf(ids)
}

func (c *call) anyBug(given string) (*bug, error) {
	if n, ok := natural(given); ok && (n > 0 || !c.server.mojolicious()) {
		if b := c.tx.bugs.get(n); b != nil {
			return b, nil
		}
		return nil, fail(codeNoBug, "there is no bug #%s", given)
	}
	b := firstMatch(c.tx.bugs.all(), func(b *bug) bool {
		return given != "" && slices.ContainsFunc(b.aliases, func(a string) bool { return strings.EqualFold(a, given) })
	})
	if b == nil {
		return nil, fail(codeBadBug, "'%s' is neither the number nor the alias of a bug", given)
	}
	return b, nil
}

// idList reads a list of ids: an array of scalars, or one scalar (tracker-behaviour.md section 6 and 7).
func (c *call) idList(name string) ([]any, error) {
	v, ok := c.params[name]
	if !ok {
		return nil, nil
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	if slices.ContainsFunc(list, func(e any) bool { return !scalar(e) }) {
		code := codeNotScalars
		if c.server.mojolicious() {
			code = codeUser
		}
		return nil, fail(code, "the parameter %s takes an array of integers and strings", name)
	}
	return list, nil
}

// maxComment is the longest comment in characters.
const maxComment = 65535

// addComment puts a comment on a bug.
func (c *call) addComment(b *bug, cm comment) error {
	cm.text = strings.TrimRightFunc(cm.text, isSpace)
	cm.text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(cm.text)
	if len([]rune(cm.text)) > maxComment {
		return fail(codeCommentTooLong, "a comment has at most %d characters", maxComment)
	}
	if cm.private && cm.kind == plainComment && !c.insider(c.user) {
		return fail(codeNotInsider, "only insiders may write private comments")
	}
	c.tx.data.lastComment++
	cm.id, cm.author, cm.at = c.tx.data.lastComment, c.user.id, c.tx.now
	edited := c.tx.bugs.edit(b.id)
	edited.comments = append(slices.Clone(edited.comments), cm)
	edited.changed = c.tx.now
	return nil
}

func isSpace(r rune) bool { return strings.ContainsRune(" \t\r\n\f\v", r) }

// commentText is a comment as shown: those about attachments begin with what they are about (tracker-behaviour.md section 6 and 7).
func (t *tx) commentText(cm comment) string {
	if cm.kind == plainComment {
		return cm.text
	}
	head := map[commentKind]string{attachmentCreated: "Created attachment ", attachmentUpdated: "Comment on attachment "}[cm.kind]
	about := head + strconv.Itoa(cm.attachment) + "\n" + t.attachments.get(cm.attachment).summary
	if cm.text == "" {
		return about
	}
	return about + "\n\n" + cm.text
}
