package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	// AnyMismatch is the key of Tally.Mismatches for comparisons whose
	// findings are no longer known. All of them are kept.
	AnyMismatch = "*"
	// UnlistedMismatch is the signature of a finding that is not kept.
	UnlistedMismatch = "?"
)

// maxMismatchText bounds the keys of one tally's mismatches, in bytes.
const maxMismatchText = 4 << 10

// Mismatch counts n comparisons in which just the findings with these signatures
// were confirmed. Without any, and where a tally has too many kinds of comparisons
// already, it counts them under AnyMismatch.
func (t *Tally) Mismatch(signatures []string, n int64) {
	sorted := slices.Compact(slices.Sorted(slices.Values(signatures)))
	key := cmp.Or(strings.Join(sorted, ","), AnyMismatch)
	if slices.Contains(sorted, UnlistedMismatch) {
		key = UnlistedMismatch
	}
	t.Mismatches = addMismatches(t.Mismatches, map[string]int64{key: n})
}

// Signatures gives those of a key of Tally.Mismatches, nil for AnyMismatch.
func Signatures(mismatch string) []string {
	if mismatch == AnyMismatch {
		return nil
	}
	return strings.Split(mismatch, ",")
}

// Unlist counts comparisons that have a finding which is not kept, or may have it, as such.
func (t Tally) Unlist(signature string) {
	for key, n := range t.Mismatches {
		if key == AnyMismatch || strings.Contains(key, signature) {
			delete(t.Mismatches, key)
			t.Mismatches[UnlistedMismatch] += n
		}
	}
}

// addMismatches leaves both maps as they are. The sum of none is nil.
func addMismatches(a, b map[string]int64) map[string]int64 {
	if len(a)+len(b) == 0 {
		return nil
	}
	sum, size := make(map[string]int64, len(a)+len(b)), 0
	for _, some := range []map[string]int64{a, b} {
		for _, key := range slices.Sorted(maps.Keys(some)) {
			n := some[key]
			if _, known := sum[key]; !known && key != UnlistedMismatch && size+len(key) > maxMismatchText {
				key = AnyMismatch
			}
			if sum[key] == 0 {
				size += len(key)
			}
			sum[key] += n
		}
	}
	return sum
}
