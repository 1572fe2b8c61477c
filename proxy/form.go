package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// formFields is the largest number of fields in a form. The interface has not half as many.
const formFields = 1000

// field is one name with all its values.
type field struct {
	name   string
	values []string
}

// grouped gathers the values of each name, names in the order of their first value.
func grouped(list parameters) []field {
	var fields []field
	at := map[string]int{}
	for _, each := range list {
		i, known := at[each.name]
		if !known {
			i = len(fields)
			at[each.name] = i
			fields = append(fields, field{name: each.name})
		}
		fields[i].values = append(fields[i].values, each.value)
	}
	return fields
}

// value gives a field as a JSON value. Lists keep all values; of other fields the first counts, unless repeated is set.
func (f field) value(repeated bool) jsontext.Value {
	always := f.name == "inclusions" || f.name == "exclusions"
	list := always || slices.Contains([]string{"ids", "names", "cc_list"}, f.name)
	if len(f.values) == 1 && !always || !list && !repeated {
		return quoted(nil, f.values[0])
	}
	array := []byte{'['}
	for i, value := range f.values {
		if i > 0 {
			array = append(array, ',')
		}
		array = quoted(array, value)
	}
	return append(array, ']')
}

func quoted(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text) // fails on what is not UTF-8 only, which the readers refuse
	return dst
}

// formBody collects the fields of a form.
type formBody struct {
	x    *exchange
	list parameters
	data *mapping.Blob
}

// add takes one field. The payload of an attachment create goes where payloads go.
func (f *formBody) add(name string, value io.Reader) error {
	if len(f.list) == formFields {
		return &mapping.LimitError{Kind: mapping.LimitMembers, Max: formFields}
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) { // UTF-16 for one
		return mapping.Refuse(mapping.CodeJSON, "The form has a field whose name is not text in UTF-8.")
	}
	if name == "data" && f.x.operation == mapping.OpCreateAttachment && f.data == nil {
		blob, err := mapping.BlobFromReader(value, f.x.splitOptions())
		if err != nil {
			return err
		}
		f.data = blob
		f.x.blobs = append(f.x.blobs, blob)
		return nil
	}
	kept := taking{value, &f.x.share, f.x.server.options.Limits.Skeleton}
	if err := kept.share.take(len(name)); err != nil {
		return err
	}
	text, err := f.x.shortText(kept)
	f.list = append(f.list, parameter{name, text})
	return err
}

// members gives the form as a JSON object.
func (f *formBody) members() mapping.Members {
	var members mapping.Members
	for _, each := range grouped(f.list) {
		members = append(members, mapping.Member{Name: each.name, Value: each.value(true)})
	}
	if f.data != nil {
		members.Set("data", mapping.AppendBlob(nil, f.data, &f.x.blobs))
	}
	return members
}

// shortText reads a text that may not be longer than a string of a JSON body.
func (x *exchange) shortText(src io.Reader) (string, error) {
	limit := x.server.options.Limits.String
	var text bytes.Buffer
	n, err := io.Copy(&text, io.LimitReader(src, int64(limit)))
	if err != nil {
		return "", err
	}
	if n == int64(limit) {
		return "", &mapping.LimitError{Kind: mapping.LimitString, Max: int64(limit)}
	}
	if !utf8.Valid(text.Bytes()) {
		return "", mapping.Refuse(mapping.CodeJSON, "The form is not valid UTF-8.")
	}
	return text.String(), nil
}

// urlencoded reads an application/x-www-form-urlencoded body.
func (x *exchange) urlencoded(body io.Reader) (mapping.Members, error) {
	form := &formBody{x: x}
	src := bufio.NewReader(boundedBody(body, x.server.options.Limits.Body))
	for {
		if _, err := src.Peek(1); errors.Is(err, io.EOF) {
			return form.members(), nil
		} else if err != nil {
			return nil, err
		}
		piece := &formText{src: src, stops: "=&;"}
		name, err := x.shortText(piece)
		if err != nil {
			return nil, err
		}
		value := &formText{src: src, stops: "&;", ended: piece.stop != '=', base64: name == "data"}
		if name == "" && value.ended {
			continue
		}
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
		if errors.Is(err, io.EOF) {
			t.ended = true
			break
		}
		if err != nil {
			return n, err
		}
		if bytes.IndexByte([]byte(t.stops), c) >= 0 {
			t.ended, t.stop = true, c
			break
		}
		p[n] = t.plain(c)
		n++
	}
	if n == 0 && t.ended {
		return 0, io.EOF
	}
	return n, nil
}

// plain gives what a byte stands for, and takes the rest of an escape.
func (t *formText) plain(c byte) byte {
	if c == '+' && !t.base64 {
		return ' '
	}
	if c != '%' {
		return c
	}
	digits, _ := t.src.Peek(2)
	value, ok := escapedByte("%" + string(digits))
	if !ok {
		return c
	}
	_, _ = t.src.Discard(2) // they have just been peeked at
	return value
}

// multipart reads a multipart/form-data body. A file in the field data is base64 as everywhere else.
func (x *exchange) multipart(body io.Reader, boundary string) (mapping.Members, error) {
	form := &formBody{x: x}
	if boundary == "" {
		return nil, mapping.Refuse(mapping.CodeJSON, "The form has no boundary.")
	}
	end := &endOfForm{src: boundedBody(body, x.server.options.Limits.Body), mark: "\n--" + boundary + "--", tail: []byte("\n")}
	reader := multipart.NewReader(end, boundary)
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) && end.seen {
			return form.members(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a form: %w", err)
		}
		if err := form.add(part.FormName(), part); err != nil {
			return nil, err
		}
	}
}

// endOfForm notices whether the last boundary of a form went by. To mime/multipart a form that was cut short between two
// fields looks like one that has ended.
type endOfForm struct {
	src  io.Reader
	mark string
	tail []byte
	seen bool
}

// Read implements io.Reader.
func (e *endOfForm) Read(p []byte) (int, error) {
	n, err := e.src.Read(p)
	if !e.seen {
		e.tail = append(e.tail, p[:n]...)
		e.seen = bytes.Contains(e.tail, []byte(e.mark))
		e.tail = append(e.tail[:0], e.tail[max(0, len(e.tail)-len(e.mark)):]...)
	}
	return n, err
}
