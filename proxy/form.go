package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// maxFormFields is the largest number of fields in a form. The interface has not half as many.
const maxFormFields = 1000

// formBody collects the fields of a form.
type formBody struct {
	rc   *requestContext
	list parameters
	data *jsonblob.Blob
}

// add takes one field. The payload of an attachment create becomes a Blob.
func (f *formBody) add(name string, value io.Reader) error {
	if len(f.list) == maxFormFields {
		return &jsonblob.LimitError{Kind: jsonblob.LimitMembers, Max: maxFormFields}
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) { // UTF-16 for one
		return mapping.Refuse(mapping.CodeJSON, "The form has a field whose name is not text in UTF-8.")
	}
	if name == "data" && f.rc.record.Operation == mapping.OpCreateAttachment && f.data == nil {
		blob, err := jsonblob.BlobFromReader(value, f.rc.splitOptions())
		if err != nil {
			return err
		}
		f.data, f.rc.blobs = blob, append(f.rc.blobs, blob)
		return nil
	}
	text, err := f.rc.heldText(value)
	f.list = append(f.list, parameter{name, text})
	return err
}

// members gives the form as a JSON object.
func (f *formBody) members() mapping.Members {
	members := f.list.members(true)
	if f.data != nil {
		members.Set("data", jsonblob.AppendBlob(nil, f.data, &f.rc.blobs))
	}
	return members
}

// heldText reads a text that is kept in memory. It may not be longer than a string of a JSON body.
func (rc *requestContext) heldText(src io.Reader) (string, error) {
	limit := int64(rc.server.options.Limits.String)
	text, err := io.ReadAll(io.LimitReader(heldReader{src, rc}, limit+1))
	switch {
	case err != nil:
	case int64(len(text)) > limit:
		err = &jsonblob.LimitError{Kind: jsonblob.LimitString, Max: limit}
	case !utf8.Valid(text):
		err = mapping.Refuse(mapping.CodeJSON, "The form is not valid UTF-8.")
	}
	return string(text), err
}

// urlencoded reads an application/x-www-form-urlencoded body.
func (rc *requestContext) urlencoded(body io.Reader) (mapping.Members, error) {
	form := &formBody{rc: rc}
	src := bufio.NewReader(body)
	for {
		switch next, err := src.Peek(1); {
		case errors.Is(err, io.EOF):
			return form.members(), nil
		case err != nil:
			return nil, err
		case isSeparator(rune(next[0])): // a field without a name or value costs no more than its byte
			_, _ = src.Discard(1) // it has just been peeked at
			continue
		}
		piece := &formText{src: src, stops: "=&;"}
		name, err := rc.heldText(piece)
		if err != nil {
			return nil, err
		}
		value := &formText{src: src, stops: "&;", ended: piece.stop != '=', base64: name == "data"}
		if err := form.add(name, value); err != nil {
			return nil, err
		}
	}
}

// formText reads a name or value of an urlencoded body up to what separates it from the next.
type formText struct {
	src    *bufio.Reader
	stops  string
	stop   byte
	ended  bool
	base64 bool // a plus means itself, see queryText
}

// Read implements io.Reader.
func (t *formText) Read(p []byte) (n int, err error) {
	for n < len(p) && !t.ended {
		c, err := t.src.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			t.ended = true
		case err != nil:
			return n, err
		case strings.IndexByte(t.stops, c) >= 0:
			t.ended, t.stop = true, c
		default:
			p[n] = t.decode(c)
			n++
		}
	}
	if n == 0 && t.ended {
		return 0, io.EOF
	}
	return n, nil
}

// decode returns what a byte stands for, and takes the rest of an escape.
func (t *formText) decode(c byte) byte {
	switch {
	case c == '+' && !t.base64:
		return ' '
	case c == '%':
		digits, _ := t.src.Peek(2)
		if value, ok := escapedByte("%" + string(digits)); ok {
			_, _ = t.src.Discard(2) // they have just been peeked at
			return value
		}
	}
	return c
}

// multipart reads a multipart/form-data body. A file in the field data is base64 as everywhere else.
func (rc *requestContext) multipart(body io.Reader, boundary string) (mapping.Members, error) {
	form := &formBody{rc: rc}
	// To mime/multipart a form that was cut short between two fields looks like one that has ended. What is appended is read as a field then, which
	// has no end.
	whole := io.MultiReader(body, strings.NewReader("\r\nx"))
	src := &struct{ io.Reader }{}
	reader := multipart.NewReader(src, boundary)
	for {
		src.Reader = heldReader{whole, rc} // mime/multipart keeps up to 10 MB of the header of a field in memory
		part, err := reader.NextPart()
		src.Reader = whole
		if err == io.EOF { // mime/multipart wraps that of a form that was cut short
			return form.members(), nil
		}
		if err != nil {
			return nil, err
		}
		if err := form.add(part.FormName(), part); err != nil {
			return nil, err
		}
	}
}

// urlencodedOrJSON reads a form, or JSON that was sent as one: curl says so of every body unless it is told otherwise. No
// form begins with a brace, because that would be escaped (docs/divergences.md).
func (rc *requestContext) urlencodedOrJSON(body io.Reader) (mapping.Members, error) {
	buffered := bufio.NewReader(body)
	head, _ := buffered.Peek(64) // an error shows again
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		return rc.json(buffered)
	}
	return rc.urlencoded(buffered)
}

// members gives the parameters as members of a JSON object, in the order of their first values. Lists keep all values; of other
// names the first value counts, unless repeated is set.
func (p parameters) members(repeated bool) mapping.Members {
	named := map[string][]string{}
	for _, each := range p {
		named[each.name] = append(named[each.name], each.value)
	}
	members := make(mapping.Members, 0, len(named))
	for _, each := range p {
		values := named[each.name]
		if values == nil {
			continue
		}
		delete(named, each.name)
		value, _ := jsontext.AppendQuote(nil, values[0]) // which replaces what is not UTF-8
		always := each.name == "inclusions" || each.name == "exclusions"
		if always || len(values) > 1 && (repeated || slices.Contains([]string{"ids", "names", "cc_list"}, each.name)) {
			value, _ = json.Marshal(values) // fails on what is not UTF-8 only, which the readers refuse
		}
		members = append(members, mapping.Member{Name: each.name, Value: value})
	}
	return members
}

// override returns members and others, which replace those of the same name.
func override(members, others mapping.Members) mapping.Members {
	named := map[string]bool{}
	for _, each := range others {
		named[each.Name] = true
	}
	return append(slices.DeleteFunc(members, func(each mapping.Member) bool { return named[each.Name] }), others...)
}
