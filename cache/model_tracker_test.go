package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// modelTracker is the truth. Private may be seen with the key member only.
type modelTracker struct {
	fakeTracker
	rand func(n int) int
	// away refuses every connection.
	away atomic.Bool
}

var errLost = &mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonTimeout, Unknown: true}

// lost is errLost with the version that the write brought about, which only the
// model may know.
func lost(version int64) error {
	e := *errLost
	e.Message = strconv.FormatInt(version, 10)
	return &e
}

func (m *modelTracker) FlagTypes(
	_ context.Context, caller upstream.Caller, request mapping.FlagTypesRequest,
) (mapping.FlagTypes, error) {
	m.dawdle()
	switch {
	case m.away.Load():
		return mapping.FlagTypes{}, errRefused
	case request.Product == "Private" && caller.Credentials.APIKey != "member":
		return mapping.FlagTypes{}, errNoProduct
	case request.Component == "none":
		return mapping.FlagTypes{}, errNoComponent
	}
	text, _ := json.Marshal(seen{m.version.Load(), caller.Credentials.APIKey, request.Product})
	m.dawdle()
	return mapping.FlagTypes{Document: mapping.NewDocument(text)}, nil
}

func (m *modelTracker) dawdle() {
	time.Sleep(time.Duration(m.rand(m.rand(4)+1)) * 5 * time.Millisecond)
}

// UpdateFlagTypes fails one time in four, before or after it took effect. Its
// reply tells the version, and so does an error after the effect.
func (m *modelTracker) UpdateFlagTypes(
	context.Context, upstream.Caller, mapping.FlagTypeUpdate,
) (mapping.FlagTypesUpdated, error) {
	m.dawdle()
	fate := m.rand(8)
	if fate == 0 || m.away.Load() {
		return mapping.FlagTypesUpdated{}, errRefused
	}
	version := m.version.Add(1)
	m.dawdle()
	if fate == 1 {
		return mapping.FlagTypesUpdated{}, lost(version)
	}
	return mapping.FlagTypesUpdated{Document: mapping.NewDocument(fmt.Append(nil, version))}, nil
}

// seen is an answer of the model's tracker.
type seen struct {
	Version int64
	Caller  string
	Product string
}
