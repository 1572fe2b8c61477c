package pages

import (
	"encoding/json"
	"slices"
)

// mostAligned is the length beyond which two lists are put side by side by place alone.
const mostAligned = 200

// align finds which elements of two lists belong together: objects by their id, or else by their name, everything else by
// being equal. What is left between two such pairs is paired by place.
func align(a, b []any) []couple {
	if len(a) > mostAligned || len(b) > mostAligned {
		return byPlace(nil, a, b)
	}
	keysA, keysB := identities(a), identities(b)
	common := commonTable(keysA, keysB)
	var pairs []couple
	i, j, fromA, fromB := 0, 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case keysA[i] == keysB[j]:
			pairs = byPlace(pairs, a[fromA:i], b[fromB:j])
			pairs = byPlace(pairs, a[i:i+1], b[j:j+1])
			i, j = i+1, j+1
			fromA, fromB = i, j
		case common[i+1][j] >= common[i][j+1]:
			i++
		default:
			j++
		}
	}
	return byPlace(pairs, a[fromA:], b[fromB:])
}

// byPlace pairs the first with the first, and so on.
func byPlace(pairs []couple, a, b []any) []couple {
	for i := range max(len(a), len(b)) {
		var p couple
		if i < len(a) {
			p.a = item{value: a[i], here: true}
		}
		if i < len(b) {
			p.b = item{value: b[i], here: true}
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// commonTable holds at [i][j] how many pairs there are from a[i] and b[j] on.
func commonTable(a, b []string) [][]int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i, keyA := range slices.Backward(a) {
		for j, keyB := range slices.Backward(b) {
			if keyA == keyB {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

func identities(list []any) []string {
	keys := make([]string, len(list))
	for i, element := range list {
		keys[i] = identity(element)
	}
	return keys
}

// identity is a text that is the same for two elements that stand for the same thing.
func identity(element any) string {
	object, _ := members(element)
	for _, name := range []string{"id", "name"} {
		switch id := object[name].(type) {
		case json.Number:
			return name + " " + id.String()
		case string:
			return name + " " + id
		}
	}
	return compact(element)
}
