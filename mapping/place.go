package mapping

// Place is where a bug belongs, as far as the tracker tells the caller.
type Place struct {
	// Bug is the id, also where an alias was asked for.
	Bug                int64
	Product, Component string
}
