package bugzilla

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// resolvePathBug finds out whether the ids of a create name the bug of its path too, where aliases make that unclear. It looks the aliases
// up with the caller's own credential. Without a result nothing is created, because a bug could be left out silently.
func (c *Client) resolvePathBug(ctx context.Context, caller upstream.Caller, request *mapping.AttachmentCreate) error {
	if request.PathBug == "" {
		return nil
	}
	key := func(ref string) string { return strings.ToLower(strings.TrimSpace(ref)) }
	numbers := map[string]int64{} // by key
	var aliases []string          // each once
	for _, ref := range append([]string{request.PathBug}, request.Bugs...) {
		_, known := numbers[key(ref)]
		number, _ := strconv.ParseInt(key(ref), 10, 64)
		if !mapping.IsBugNumber(ref) {
			number = 0
		}
		if numbers[key(ref)] = number; number == 0 && !known {
			aliases = append(aliases, strings.TrimSpace(ref))
		}
	}
	bugs, err := c.bugs(ctx, caller, aliases)
	for i, bug := range bugs {
		numbers[key(aliases[i])] = bug.Bug
	}
	if err == nil {
		request.Settle(slices.ContainsFunc(request.Bugs, func(ref string) bool { return numbers[key(ref)] == numbers[key(request.PathBug)] }))
	}
	return err
}
