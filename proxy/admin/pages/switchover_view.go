package pages

import (
	"cmp"
	"encoding/json"
	"slices"

	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// switchoverPage is the data of the page.
type switchoverPage struct {
	Done      string
	Status    switchover.Status
	History   []historyEntry
	NoHistory string
	Form      judgement
	Unpaired  []idmap.Unpaired
}

// stepClass says how a phase is drawn, as seen from the present one.
func stepClass(here, phase switchover.Phase) string {
	all := switchover.Phases()
	return []string{"passed", "here", ""}[1+cmp.Compare(slices.Index(all, phase), slices.Index(all, here))]
}

// historyEntry is one change of the rules.
type historyEntry struct {
	state.Revision
	// Changes say in words what became different.
	Changes []string         `json:"changes"`
	Table   switchover.Table `json:"table"`
}

// viewHistory says what each revision changed. The oldest one has nothing to be compared with.
func viewHistory(revisions []state.Revision) []historyEntry {
	all := make([]historyEntry, len(revisions))
	for i, r := range slices.Backward(revisions) {
		all[i].Revision = r
		_ = json.Unmarshal(r.Table, &all[i].Table) // a table that cannot be read is shown as an empty one
		if i+1 < len(revisions) {
			all[i].Changes = switchover.Changes(all[i+1].Table, all[i].Table)
		} else {
			all[i].Changes = []string{plural(int64(len(all[i].Table.Rules)), "rule", "rules")}
		}
	}
	return all
}
