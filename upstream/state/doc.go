// Package state keeps in SQL what must survive a restart of Portico and what several replicas share: findings, sums of comparisons, phases, audit records and creates.
package state
