package recording

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// interfaces are the first segments of paths at which the tracker is spoken to by programs. Everything else are its pages.
var interfaces = []string{"rest", "rest.cgi", "jsonrpc.cgi", "xmlrpc.cgi"}

// isPage tells whether a target is a page of the tracker. Pages have credentials under names that mean nothing elsewhere,
// such as the t of links that set a new password. None of them is compared, so nothing is lost when little of them is kept.
func isPage(target string) bool {
	plain, _, _ := strings.Cut(withoutHost(target), "?")
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+unescaped(plain)), "/"), "/")
	return !slices.Contains(interfaces, first)
}

// pagePath is what is kept of the target of a page.
var pagePath = regexp.MustCompile(`^[A-Za-z0-9_./~\-]*`)

// removedText stands for what is not kept of a page's target.
const removedText = "removed"

// pageTarget gives the path of a page, and tells when there was more.
func (s *sheet) pageTarget(target string) string {
	kept := pagePath.FindString(target)
	if kept == target {
		return target
	}
	s.spoilt(pageInput)
	return kept + "?" + removedText
}
