package cache

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// token names one generation of the flag types. Its text is what Redis holds:
// a number that grows from each token to the next one made by somebody who knew
// it, a dash, and a random part. The number shows a Redis that went back in time
// (restored from a snapshot, or failed over to a replica that lagged); the
// random part makes sure that no two changes ever look the same.
type token struct {
	text string
	at   int64
	// turn differs between any two present generations of one process, also
	// where Redis could not be told of the change.
	turn uint64
}

// newToken makes a token that comes after all tokens up to at.
func newToken(at int64, now time.Time) token {
	var random [8]byte
	rand.Read(random[:])
	at = max(at+1, now.UnixMilli())
	return token{text: strconv.FormatInt(at, 10) + "-" + hex.EncodeToString(random[:]), at: at}
}

func parseToken(text string) (token, bool) {
	number, random, found := strings.Cut(text, "-")
	at, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil || at < 0 || len(random) != 16 {
		return token{}, false
	}
	return token{text: text, at: at}, true
}
