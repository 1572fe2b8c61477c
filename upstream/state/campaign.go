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
	started := Record{Actor: actor, Action: "campaign.started", Reason: reason}
	return s.record(ctx, "starting a campaign", started, func(tx *session) {
		tx.lockCampaign(tx.forUpdate)
		for _, table := range []string{"samples", "finding_scopes", "findings", "tallies", "evidence", "rule_uses"} {
			tx.exec("DELETE FROM portico_" + table)
		}
		tx.exec("UPDATE portico_campaign SET started_at = ?, actor = ?, reason = ?", s.now(), actor, reason)
	})
}

// lockCampaign locks the campaign until the transaction is over. Transactions that add one thing to it share the lock (forShare), so that no
// new campaign begins meanwhile. One that adds several, or removes what belongs to it, has the lock alone (forUpdate); otherwise two would wait for each other's rows.
func (s *session) lockCampaign(lock string) { one[int](s, "SELECT id FROM portico_campaign"+lock) }
