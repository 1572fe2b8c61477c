package state

import (
	"context"
	"maps"
	"slices"
)

// AddRuleUses adds hits to the rules' counts and moves their last use.
func (s *Store) AddRuleUses(ctx context.Context, uses []RuleUse) error {
	sums := map[string]RuleUse{}
	for _, use := range uses {
		key := name(use.Name)
		sum := sums[key]
		if use.Last.After(sum.Last) {
			sum.Last = use.Last
		}
		sum.Hits += use.Hits
		sums[key] = sum
	}
	if len(sums) == 0 {
		return nil
	}
	return s.write(ctx, "adding uses of rules", func(tx session) error {
		if err := tx.campaign(ctx, tx.forShare); err != nil {
			return err
		}
		// Sorted, as the rows of tallies are.
		for _, key := range slices.Sorted(maps.Keys(sums)) {
			if _, err := tx.exec(ctx, `INSERT INTO portico_rule_uses (name, hits, last_at) VALUES (?, ?, ?)
				ON CONFLICT (name) DO UPDATE SET hits = portico_rule_uses.hits + excluded.hits,
				last_at = CASE WHEN excluded.last_at > portico_rule_uses.last_at THEN excluded.last_at ELSE portico_rule_uses.last_at END`,
				key, sums[key].Hits, micros(sums[key].Last)); err != nil {
				return err
			}
		}
		return nil
	})
}

// RuleUses gives the uses of all rules that were ever used in this campaign, by
// name.
func (s *Store) RuleUses(ctx context.Context) ([]RuleUse, error) {
	all, err := list(ctx, s.read(), func(scan scanner) (use RuleUse, err error) {
		var last int64
		err = scan(&use.Name, &use.Hits, &last)
		use.Last = fromMicros(last)
		return use, err
	}, "SELECT name, hits, last_at FROM portico_rule_uses ORDER BY name")
	return all, s.failed("reading the uses of rules", err)
}
