package state

import "context"

// AddRuleUses adds hits to the rules' counts and moves their last use.
func (s *Store) AddRuleUses(ctx context.Context, uses []RuleUse) error {
	if len(uses) == 0 {
		return nil
	}
	return s.write(ctx, "adding uses of rules", func(tx *session) {
		tx.lockCampaign(tx.forUpdate)
		for _, use := range uses {
			tx.exec(`INSERT INTO portico_rule_uses (name, hits, last_at) VALUES (?, ?, ?)
				ON CONFLICT (name) DO UPDATE SET hits = portico_rule_uses.hits + excluded.hits,
				last_at = CASE WHEN excluded.last_at > portico_rule_uses.last_at THEN excluded.last_at ELSE portico_rule_uses.last_at END`,
				name(use.Name), use.Hits, use.Last)
		}
	})
}

// RuleUses gives the uses of all rules that were ever used in this campaign, by
// name.
func (s *Store) RuleUses(ctx context.Context) ([]RuleUse, error) {
	return read[RuleUse](ctx, s, "reading the uses of rules", "SELECT name, hits, last_at FROM portico_rule_uses ORDER BY name")
}
