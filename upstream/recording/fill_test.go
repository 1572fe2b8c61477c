package recording_test

import (
	"regexp"
	"testing"

	"portico/upstream/recording"
)

// TestFill: what was taken out and put back is the request that it was, in every form, for another key as well.
func TestFill(t *testing.T) {
	const key = `Key "with" <odd> & + % / things`
	for _, form := range forms() {
		s := seen()
		form.put(&s, key)
		e := recording.NewRedactor(1 << 10).Redact(s)
		if e.Unsendable != "" || len(e.Callers) == 0 {
			continue
		}
		values := map[string]string{}
		for _, name := range e.Callers {
			values[name] = key
		}
		filled, err := e.Fill(values)
		if err != nil {
			t.Fatal(err)
		}
		again := recording.Exchange{Request: filled}
		// Sent again it is redacted to the same, so the credential stands where it stood, in a spelling that is read.
		twice := recording.NewRedactor(1 << 10).Redact(again)
		if unnumbered(twice.Request.Path) != unnumbered(e.Request.Path) || unnumbered(string(twice.Request.Body)) != unnumbered(string(e.Request.Body)) {
			t.Errorf("%s: filled it is\n%s %s\nand again\n%s %s\nwant\n%s %s", form.name, filled.Path, filled.Body, twice.Request.Path, twice.Request.Body, e.Request.Path, e.Request.Body)
		}
	}
}

var numbers = regexp.MustCompile(`-\d+\}\}`)

func unnumbered(text string) string { return numbers.ReplaceAllString(text, "}}") }

func TestFillRefuses(t *testing.T) {
	s := seen()
	s.Request.Headers["X-Bugzilla-Api-Key"] = "key one"
	s.Request.Path += "?token=two"
	e := recording.NewRedactor(1 << 10).Redact(s)
	_, err := e.Fill(map[string]string{"caller-2": "x"})
	if err == nil || err.Error() != "nothing is known for caller-1" {
		t.Errorf("got %v", err)
	}
	if _, err := e.Fill(map[string]string{"caller-1": "x", "caller-2": "x\r\nEvil: 1"}); err == nil {
		t.Error("a value of two lines was put into a header")
	}
	literal := recording.Exchange{Request: recording.Request{Path: "/{{caller-1}}"}}
	if filled, err := literal.Fill(map[string]string{"caller-1": "key"}); err != nil || filled.Path != "/{{caller-1}}" {
		t.Errorf("a text that looks like a placeholder became %q, %v", filled.Path, err)
	}
}
