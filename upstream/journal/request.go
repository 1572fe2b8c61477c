package journal

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream/state"
)

// laneOf names an object by its id. The writes of all flag types are in one lane, but a create of one names it so.
func laneOf(kind string, id int64) string {
	return strings.ReplaceAll(kind, "_", " ") + " " + strconv.FormatInt(id, 10)
}

// objectID is the id in the name of a lane, 0 for none.
func objectID(lane string) int64 {
	id, _ := strconv.ParseInt(lane[strings.LastIndexByte(lane, ' ')+1:], 10, 64)
	return id
}

// request is a write of one object in the form that is kept, with the ids that clients know.
type request struct {
	// Members are those of the body without its data.
	Members jsontext.Value `json:"members"`
	// Content is the base64 text of a small content.
	Content string `json:"content,omitempty"`
}

// maxRecorded bounds what the entries of one write take in the store, in bytes. Each has the whole request.
const maxRecorded = 4 << 20

// spoolContent writes the content of a write to the spool, once for all its entries, unless it is small for all of them together.
func (s *Settings) spoolContent(content *jsonblob.Blob, entries int) (name string, err error) {
	if content == nil || content.EncodedLen()*int64(entries) <= s.MaxInline {
		return "", nil
	}
	return s.spool().write(content.Reader())
}

// seal puts a request into an entry, which has its lane and perhaps the file with its content.
func (s *Settings) seal(e *state.JournalEntry, of operation) error {
	body, err := of.members(mapping.Dialect{})
	if err != nil {
		return err
	}
	kept := request{Members: body.AppendJSON(nil)}
	if of.content != nil && e.Spool == "" {
		text, err := io.ReadAll(of.content.Reader())
		if err != nil {
			return err
		}
		kept.Content = string(text)
	}
	text, err := json.Marshal(kept)
	if err == nil {
		e.Request = s.Keys.seal(text, e.Lane)
	}
	return err
}

// open reads the request of an entry. The caller closes its content.
func (s *Settings) open(e *state.JournalEntry) (of operation, err error) {
	text, err := s.Keys.open(e.Request, e.Lane)
	if err != nil {
		return of, err
	}
	var kept request
	if err := json.Unmarshal(text, &kept); err != nil {
		return of, err
	}
	body, err := mapping.ParseMembers(kept.Members)
	if err != nil {
		return of, err
	}
	contents, err := s.contents(e, kept)
	if err != nil {
		return of, err
	}
	if len(contents) > 0 {
		body.Set("data", jsonblob.AppendPlaceholder(nil, 0))
	}
	if of, err = decode(e.Operation, body, contents); err != nil {
		err = errors.Join(err, jsonblob.CloseBlobs(contents))
	}
	return of, err
}

// contents reads the content of a request, if it has one.
func (s *Settings) contents(e *state.JournalEntry, kept request) ([]*jsonblob.Blob, error) {
	var content io.Reader = strings.NewReader(kept.Content)
	switch {
	case e.Spool != "":
		file, err := s.spool().open(e.Spool)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		content = file
	case kept.Content == "":
		return nil, nil
	}
	blob, err := jsonblob.BlobFromReader(content, s.Split)
	if err != nil {
		return nil, err
	}
	return []*jsonblob.Blob{blob}, nil
}

// firstOf is the first value in the lists of a body.
func firstOf(body mapping.Members, names ...string) string {
	for _, name := range names {
		var list []jsontext.Value
		if json.Unmarshal(body.Get(name), &list) == nil && len(list) > 0 {
			text, _ := mapping.Text(list[0])
			return text
		}
	}
	return ""
}
