package mapping

import "io"

// Tee copies what the tracker sent to w while the document is read, whatever is
// read out of it and by whom, and calls done once when it is closed: whole says
// that w has all of it. What is in memory already is copied at once. A failure of
// w ends the copying and never the reading. Call it at most once, before the
// document is read.
func (d *Document) Tee(w io.Writer, done func(whole bool)) {
	t := &tee{to: w, done: done}
	if d.rest == nil {
		_, err := d.WriteTo(w)
		t.ended, t.failed = true, err != nil
	} else {
		t.copy(d.text)
	}
	t.from = d.rest
	d.rest, d.onClose = t.reader(), t.close
}

// tee is a stream that is copied while it is read.
type tee struct {
	from          io.ReadCloser
	to            io.Writer
	done          func(whole bool)
	ended, failed bool
}

// reader is nil where there is nothing left to read.
func (t *tee) reader() io.ReadCloser {
	if t.from == nil {
		return nil
	}
	return t
}

func (t *tee) copy(p []byte) {
	if !t.failed && len(p) > 0 {
		_, err := t.to.Write(p)
		t.failed = err != nil
	}
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.copy(p[:n])
	t.ended = t.ended || err == io.EOF
	return n, err
}

// Close implements io.Closer.
func (t *tee) Close() error { return t.from.Close() }

func (t *tee) close() { t.done(t.ended && !t.failed) }
