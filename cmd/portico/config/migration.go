package config

import (
	"fmt"
	"time"

	"portico/upstream/canary"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// Switchover says which of two trackers serves which requests.
type Switchover struct {
	// Follow is how long a caller's reads of an object go to the tracker of its own last write of it.
	Follow time.Duration `key:"follow" default:"1m" min:"0s"`
	// Journal records the writes of rules with replicate, and copies them to the other tracker.
	Journal Journal `key:"journal"`
	// Settings are about ids and names of objects that both trackers have.
	idmap.Settings `keys:""`
	// RuleFile may also stand in a file of its own (LoadRules).
	switchover.RuleFile `keys:""`
}

// Journal is about writes that are recorded and copied to the other tracker.
type Journal struct {
	// Key encrypts what is recorded.
	Key Secret `keys:"key_" is:"bytes"`
	// OlderKeyFiles hold keys that are used no more, for what was recorded with them.
	OlderKeyFiles []string `key:"older_key_files"`
	// Section is how they are recorded and copied.
	journal.Section `keys:""`
	// ServiceKey is shown to the candidate for copies of callers that have no key there, PrimaryServiceKey to the primary.
	ServiceKey        Secret `keys:"service_key_"`
	PrimaryServiceKey Secret `keys:"primary_service_key_"`

	// Keys are those of Key and OlderKeyFiles, which Problems reads; nil where none is configured.
	Keys *journal.Keys
}

// readKeys reads the older keys, too. An error is about the key of the section that is called at.
func (j *Journal) readKeys() (at string, err error) {
	if j.Key.text == "" {
		return "", nil
	}
	var older [][]byte
	for i, file := range j.OlderKeyFiles {
		key := Secret{File: file}
		err = key.Read(nil)
		if older = append(older, []byte(key.text)); err == nil {
			_, err = journal.NewKeys(older[i])
		}
		if err != nil {
			return fmt.Sprintf("older_key_files[%d]", i), err
		}
	}
	j.Keys, err = journal.NewKeys([]byte(j.Key.text), older...)
	return "key_" + j.Key.source(), err
}

// Canary is the comparison of two trackers' responses.
type Canary struct {
	// Settings are those of the comparison itself.
	canary.Settings `keys:""`
	// Credentials says what the other tracker is shown: the caller's own credential, one of the service, or one for each
	// named caller.
	Credentials string `key:"credentials" default:"forward" oneof:"forward|service|mapped"`
	// ServiceKey is the key of the service.
	ServiceKey Secret `keys:"service_key_"`
}
