package state

import "context"

// CurrentCampaign tells since when comparisons count. The first campaign began when
// the database was made, and has no actor.
func (s *Store) CurrentCampaign(ctx context.Context) (Campaign, error) {
	return readOne[Campaign](ctx, s, "reading the campaign", "SELECT started_at, actor, reason FROM portico_campaign")
}

// StartCampaign forgets findings with their samples, tallies and uses of rules.
// Judgements stay in the audit trail, which gets a record "campaign.started".
func (s *Store) StartCampaign(ctx context.Context, actor, reason string) error {
	now := s.now()
	return s.write(ctx, "starting a campaign", func(tx session) error {
		if err := tx.campaign(ctx, tx.forUpdate); err != nil {
			return err
		}
		for _, forget := range []string{
			"DELETE FROM portico_samples", "DELETE FROM portico_finding_scopes", "DELETE FROM portico_findings", "DELETE FROM portico_tallies", "DELETE FROM portico_evidence",
			"DELETE FROM portico_rule_uses",
		} {
			if _, err := tx.exec(ctx, forget); err != nil {
				return err
			}
		}
		if _, err := tx.exec(ctx, "UPDATE portico_campaign SET started_at = ?, actor = ?, reason = ?", micros(now), clean(actor), clean(reason)); err != nil {
			return err
		}
		return tx.append(ctx, Record{At: now, Actor: actor, Action: "campaign.started", Reason: reason})
	})
}

// campaign locks the campaign until the transaction is over. Transactions that add to it share the lock (forShare), so that no
// new campaign begins meanwhile. One that removes what belongs to it has the lock alone (forUpdate); otherwise both would wait for each other's rows.
func (s session) campaign(ctx context.Context, lock string) error {
	var id int
	return s.row(ctx, "SELECT id FROM portico_campaign"+lock).Scan(&id)
}
