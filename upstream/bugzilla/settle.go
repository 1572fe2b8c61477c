package bugzilla

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// settle finds out whether the ids of a create name the bug of its path too, where the names alone do not tell. It asks
// with the caller's own credential; without an answer nothing is created, because a bug might be left out without a word.
func (c *Client) settle(ctx context.Context, caller upstream.Caller, request *mapping.AttachmentCreate) error {
	if request.PathBug == "" {
		return nil
	}
	path, err := c.bugNumbers(ctx, caller, []string{request.PathBug})
	if err != nil {
		return err
	}
	numbers, aliases := partRefs(request.Bugs)
	if !slices.Contains(numbers, path[0]) {
		numbers, err = c.bugNumbers(ctx, caller, aliases)
	}
	if err == nil {
		request.Settle(slices.Contains(numbers, path[0]))
	}
	return err
}

// bugNumbers tells which bugs references mean; only aliases are asked for. Codes: 100, 101, 102.
func (c *Client) bugNumbers(ctx context.Context, caller upstream.Caller, refs []string) ([]int64, error) {
	numbers, aliases := partRefs(refs)
	if len(aliases) == 0 {
		return numbers, nil
	}
	call, err := planBugs(c.Dialect(ctx), aliases, "id")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Bugs []struct {
			ID int64 `json:"id"`
		} `json:"bugs"`
	}
	if err := c.lookUp(ctx, caller, call, &answer); err != nil {
		return nil, err
	}
	for _, bug := range answer.Bugs {
		numbers = append(numbers, bug.ID)
	}
	if len(answer.Bugs) != len(aliases) || slices.Contains(numbers, 0) {
		return nil, failure(&call, bad("the tracker's answer does not tell which bugs the aliases mean"))
	}
	return numbers, nil
}

// partRefs parts references to bugs into numbers and aliases, each alias once.
func partRefs(refs []string) (numbers []int64, aliases []string) {
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
