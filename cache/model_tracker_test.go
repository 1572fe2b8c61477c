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

// Do implements upstream.Tracker.
func (m *modelTracker) Do(_ context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	if call.FlagTypes != nil {
		return m.read(caller, *call.FlagTypes)
	}
	return m.write()
}

func (m *modelTracker) read(caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
	m.dawdle()
	switch {
	case m.away.Load():
		return mapping.Reply{}, errRefused
	case request.Product == "Private" && caller.Credentials.APIKey != "member":
		return mapping.Reply{}, errNoProduct
	case request.Component == "none":
		return mapping.Reply{}, errNoComponent
	}
	text, _ := json.Marshal(seen{m.version.Load(), caller.Credentials.APIKey, request.Product})
	m.dawdle()
	return mapping.Reply{Document: mapping.NewDocument(text)}, nil
}

func (m *modelTracker) dawdle() {
	time.Sleep(time.Duration(m.rand(m.rand(4)+1)) * 5 * time.Millisecond)
}

// write fails one time in four, before or after it took effect. Its
// reply tells the version, and so does an error after the effect.
func (m *modelTracker) write() (mapping.Reply, error) {
	m.dawdle()
	fate := m.rand(8)
	if fate == 0 || m.away.Load() {
		return mapping.Reply{}, errRefused
	}
	version := m.version.Add(1)
	m.dawdle()
	if fate == 1 {
		return mapping.Reply{}, lost(version)
	}
	return mapping.Reply{Document: mapping.NewDocument(fmt.Append(nil, version))}, nil
}

// seen is an answer of the model's tracker.
type seen struct {
	Version int64
	Caller  string
	Product string
}
