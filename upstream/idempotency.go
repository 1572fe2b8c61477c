package upstream

import (
	"crypto/sha256"
	"time"

	"portico/mapping"
)

// IdempotencyTime is how long a create that came with an Idempotency-Key is remembered.
const IdempotencyTime = 24 * time.Hour

// IdempotencyRecord is what is known of one such create.
type IdempotencyRecord struct {
	// Content stands for what the first request asked for.
	Content [sha256.Size]byte
	// Running says that it is being carried out, or that the process that did so has ended before it could say what became of it.
	Running bool
	// Since is when it began, or when its process last said that it is running.
	Since time.Time
	// Body is the tracker's response, unless Failed is set.
	Body []byte
	// Failed is the error that the client got, for a create that may have been carried out. Of a stored one everything is kept but its cause.
	Failed *mapping.Error
}
