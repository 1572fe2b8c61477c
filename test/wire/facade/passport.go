package facade

import (
	"portico/mapping"
	"portico/test/wire"
	"portico/upstream/recording"
)

// Table is the passport of one operation, or of all other requests when Operation is empty.
type Table struct {
	Operation mapping.Operation
	Kinds     map[Kind]int
	// Skipped are the exchanges whose response is not known.
	Skipped []string
}

// Exchanges is the number of exchanges that were replayed.
func (t *Table) Exchanges() int {
	total := 0
	for _, count := range t.Kinds {
		total += count
	}
	return total
}

// Passport sums up what became of every exchange: a table for each operation and one for the rest.
func Passport(exchanges []wire.Exchange, results []Result) []Table {
	tables := []Table{}
	for _, operation := range append(mapping.Operations(), "") {
		table := Table{Operation: operation, Kinds: map[Kind]int{}}
		for _, result := range results {
			if is := recording.OperationOf(result.Request.Method, result.Request.Path); is == operation {
				table.Kinds[result.Kind()]++
			}
		}
		for _, exchange := range exchanges {
			if is := recording.OperationOf(exchange.Request.Method, exchange.Request.Path); is == operation && exchange.Response == nil {
				table.Skipped = append(table.Skipped, exchange.Name)
			}
		}
		tables = append(tables, table)
	}
	return tables
}
