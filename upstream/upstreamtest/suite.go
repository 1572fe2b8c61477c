package upstreamtest

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
)

// Subject is one Tracker to be tested, freshly seeded with the fixture.
type Subject struct {
	Tracker upstream.Tracker
	// Keys are the fixture's API keys by user.
	Keys map[string]string
}

// caller makes the caller of a fixture user; the empty name is anonymous.
func (s Subject) caller(user string) upstream.Caller {
	return upstream.Caller{Credentials: upstream.Credentials{APIKey: s.Keys[user]}, RequestID: "contract-" + user}
}

// do makes a call as a fixture user.
func (s Subject) do(t *testing.T, user string, call upstream.Call) (mapping.Reply, error) {
	t.Helper()
	return s.Tracker.Do(t.Context(), s.caller(user), call)
}

// TestTracker runs the whole contract. open gives a fresh Subject each time and
// cleans up by t.Cleanup.
func TestTracker(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	cases := []struct {
		name string
		test func(t *testing.T, s Subject)
	}{
		{"flag types depend on the caller", flagTypesDependOnCaller},
		{"flag types of a component", flagTypesOfComponent},
		{"flag types hide a secret product", flagTypesHideSecret},
		{"flag types of names that no path carries", flagTypesOddNames},
		{"flag type created", flagTypeCreated},
		{"flag type create is refused", flagTypeCreateRefused},
		{"flag type write shows in the next read", flagTypeWriteShows},
		{"flag types updated as one union", flagTypesUpdatedAsUnion},
		{"flag type update is all or nothing", flagTypeUpdateAllOrNothing},
		{"attachments of a bug", attachmentsOfBug},
		{"attachment by id", attachmentByID},
		{"private attachments", privateAttachments},
		{"attachment created on several bugs", attachmentCreated},
		{"attachment create is all or nothing", attachmentCreateAllOrNothing},
		{"attachment created on bugs under several names", attachmentCreatedUnderNames},
		{"attachments updated", attachmentsUpdated},
		{"attachment flags", attachmentFlags},
		{"errors carry code and status", errorsCarryCode},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// flagType is what the suite looks at in a flag type.
type flagType struct {
	ID         int64    `json:"id"`
	Name       string   `json:"name"`
	Type       string   `json:"type"`
	Values     []string `json:"values"`
	IsActive   bool     `json:"is_active"`
	Inclusions []string `json:"inclusions"`
}

type flagTypes struct {
	Bug        []flagType `json:"bug"`
	Attachment []flagType `json:"attachment"`
}

func (f flagTypes) named(name string) (flagType, bool) {
	for _, list := range [][]flagType{f.Attachment, f.Bug} {
		for _, one := range list {
			if one.Name == name {
				return one, true
			}
		}
	}
	return flagType{}, false
}

type attachment struct {
	ID          int64  `json:"id"`
	BugID       int64  `json:"bug_id"`
	Data        string `json:"data"`
	Size        int64  `json:"size"`
	FileName    string `json:"file_name"`
	Summary     string `json:"summary"`
	ContentType string `json:"content_type"`
	IsPatch     int    `json:"is_patch"`
	IsPrivate   int    `json:"is_private"`
	IsObsolete  int    `json:"is_obsolete"`
	Flags       []struct {
		ID     int64  `json:"id"`
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"flags"`
}

type attachments struct {
	Bugs        map[string][]attachment `json:"bugs"`
	Attachments map[string]attachment   `json:"attachments"`
}

// read decodes a reply's document, payloads included, and closes it.
func read[T any](t *testing.T, document *mapping.Document, err error) T {
	t.Helper()
	var value T
	if err != nil {
		t.Fatalf("the call failed: %v", err)
	}
	defer func() {
		if err := document.Close(); err != nil {
			t.Errorf("close the reply: %v", err)
		}
	}()
	var text buffer
	if _, err := document.WriteTo(&text); err != nil {
		t.Fatalf("write the reply: %v", err)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return value
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// wantCode checks that an error is the tracker's or Portico's with a code.
func wantCode(t *testing.T, err error, code, status int) {
	t.Helper()
	var said *mapping.Error
	if !errors.As(err, &said) {
		t.Fatalf("got error %v, want a *mapping.Error with code %d", err, code)
	}
	if said.Code != code || said.Status != status {
		t.Fatalf("got code %d status %d (%s), want %d and %d", said.Code, said.Status, said.Message, code, status)
	}
}

func (s Subject) types(t *testing.T, user, product, component string) flagTypes {
	t.Helper()
	reply, err := s.do(t, user, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product, Component: component}})
	return read[flagTypes](t, reply.Document, err)
}

func (s Subject) typesError(t *testing.T, user, product, component string) error {
	t.Helper()
	_, err := s.do(t, user, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product, Component: component}})
	return err
}
