package switchover

// Phase says which of the two trackers answers, and whether the other one is
// compared with it.
type Phase string

// The phases, in the order of a move.
const (
	PhaseOld        Phase = "old"
	PhaseOldCompare Phase = "old-compare"
	PhaseNewCompare Phase = "new-compare"
	PhaseNew        Phase = "new"
)

// Phases lists all four in the order of a move.
func Phases() []Phase { return []Phase{PhaseOld, PhaseOldCompare, PhaseNewCompare, PhaseNew} }

// Valid tells whether it is one of the four.
func (p Phase) Valid() bool {
	switch p {
	case PhaseOld, PhaseOldCompare, PhaseNewCompare, PhaseNew:
		return true
	default:
		return false
	}
}

// New tells whether the new tracker answers.
func (p Phase) New() bool { return p == PhaseNewCompare || p == PhaseNew }

// Compares tells whether the other tracker is compared with the one that answers.
func (p Phase) Compares() bool { return p == PhaseOldCompare || p == PhaseNewCompare }

// side is one of the two trackers.
type side uint8

const (
	oldSide side = iota
	newSide
)

func (p Phase) side() side {
	if p.New() {
		return newSide
	}
	return oldSide
}

func (s side) other() side { return 1 - s }
