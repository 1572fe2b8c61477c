package bugzilla

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// resolvePathBug finds out whether the ids of a create name the bug of its path too, where aliases make that unclear. It looks the bugs
// up with the caller's own credential. Without a result nothing is created, because a bug could be left out silently.
func (c *Client) resolvePathBug(ctx context.Context, caller upstream.Caller, request *mapping.AttachmentCreate) error {
	if request.PathBug == "" {
		return nil
	}
	path, err := c.bugNumbers(ctx, caller, []string{request.PathBug})
	if err != nil {
		return err
	}
	numbers, aliases := splitRefs(request.Bugs)
	if !slices.Contains(numbers, path[0]) {
		numbers, err = c.bugNumbers(ctx, caller, aliases)
	}
	if err == nil {
		request.Settle(slices.Contains(numbers, path[0]))
	}
	return err
}

// bugNumbers returns the bugs that references mean; only aliases are looked up. Codes: 100, 101, 102.
func (c *Client) bugNumbers(ctx context.Context, caller upstream.Caller, refs []string) ([]int64, error) {
	numbers, aliases := splitRefs(refs)
	if len(aliases) == 0 {
		return numbers, nil
	}
	bugs, err := c.bugs(ctx, caller, aliases)
	for _, bug := range bugs {
		numbers = append(numbers, bug.ID)
	}
	return numbers, err
}

// splitRefs splits references to bugs into numbers and aliases, each alias once.
func splitRefs(refs []string) (numbers []int64, aliases []string) {
	for _, ref := range refs {
		ref = strings.TrimSpace(ref)
		same := func(alias string) bool { return strings.EqualFold(alias, ref) }
		if id, err := strconv.ParseInt(ref, 10, 64); err == nil && mapping.IsBugNumber(ref) {
			numbers = append(numbers, id)
		} else if !slices.ContainsFunc(aliases, same) {
			aliases = append(aliases, ref)
		}
	}
	return numbers, aliases
}
