package fuzz

import (
	"strings"

	"portico/mapping"
)

const formType = "application/x-www-form-urlencoded"

// urlencoded are forms of the kind that browsers send by default. Invalid escapes stay as they are written, as
// in an address (recorded as proto.bad_percent_query).
func urlencoded() []Class {
	missing := onCreates()
	form := func(name, text string, outcome Outcome, by map[mapping.Operation]Outcome) Class {
		return Class{
			Group: "Forms", Name: name, Types: []string{formType}, Shown: shown(text), Outcome: outcome, By: by,
			Raw: func(to Target, contentType string) string {
				return with(contentType, strings.ReplaceAll(text, good, to.Form))
			},
		}
	}
	charset := form("UTF-16 by name, ASCII in fact", "…", Outcome{}, nil)
	charset.Types = []string{formType + "; charset=utf-16"}
	return []Class{
		form("good", "…", Outcome{}, nil),
		form("nothing", "", Outcome{}, missing),
		form("separators only", "&&;&", Outcome{}, missing),
		form("an empty name", "…&=x", Outcome{}, nil),
		form("a bad escape", "…&x=%zz", Outcome{}, nil),
		form("half an escape", "…&x=%4", Outcome{}, nil),
		form("a stray percent sign", "…&x=100%", Outcome{}, nil),
		form("an escape of another kind", "…&x=%u0041", Outcome{}, nil),
		form("JSON, as curl sends it", `{"x":1}`, Outcome{}, missing),
		form("broken JSON", `{"x":`, invalid(), nil),
		form("an array of JSON", `[{"x":1}]`, Outcome{}, missing),
		form("NUL in a value", "…&x=%00", Outcome{}, nil),
		form("NUL in a name", "…&x%00=1", invalid(), nil),
		form("not UTF-8, escaped", "…&x=%ff", invalid(), nil),
		form("not UTF-8, raw", "…&x=\xff", invalid(), nil),
		form("not UTF-8 in a name", "…&%ff=x", invalid(), nil),
		form("a slash in two bytes", "…&x=%c0%af", invalid(), nil),
		form("half a pair in UTF-8", "…&x=%ed%a0%80", invalid(), nil),
		form("UTF-16", "n\x00=\x00v\x00", invalid(), nil),
		form("a value longer than a megabyte", "…&x="+strings.Repeat("a", 1<<20+1), tooLarge(), nil),
		form("a name longer than a megabyte", "…&"+strings.Repeat("a", 1<<20+1), tooLarge(), nil),
		form("2000 fields", "…"+strings.Repeat("&x=", 2000), tooLarge(), nil),
		charset,
	}
}

// multiparts are forms of the kind that browsers send files with.
func multiparts() []Class {
	const part, end = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nv", "\r\n--b--\r\n"
	form := func(name, contentType, text string, outcome Outcome) Class {
		class := Class{
			Group: "Multipart forms", Name: name, Types: []string{contentType}, Shown: shown(text), Outcome: outcome,
			Raw: func(_ Target, contentType string) string { return with(contentType, text) },
		}
		if outcome.Accepted() {
			class.By = onCreates()
		}
		return class
	}
	const kind = "multipart/form-data; boundary=b"
	return []Class{
		form("one field", kind, part+end, Outcome{}),
		form("no field", kind, "--b--\r\n", Outcome{}),
		form("text before and after", kind, "before\r\n"+part+end+"after", Outcome{}),
		form("no boundary", "multipart/form-data", part+end, invalid()),
		form("an empty boundary", "multipart/form-data; boundary=", part+end, invalid()),
		form("another boundary", "multipart/form-data; boundary=c", part+end, invalid()),
		form("a boundary with a bad character", "multipart/form-data; boundary=b\"c", part+end, invalid()),
		form("nothing", kind, "", invalid()),
		form("cut within the first boundary", kind, "--", invalid()),
		form("cut after the first boundary", kind, "--b\r\n", invalid()),
		form("cut within a header", kind, "--b\r\nContent-Dispo", invalid()),
		form("cut after the headers", kind, "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n", invalid()),
		form("cut within a value", kind, part, invalid()),
		form("cut before the last boundary", kind, part+"\r\n", invalid()),
		form("cut within the last boundary", kind, part+"\r\n--b", invalid()),
		form("cut after a field", kind, part+"\r\n--b\r\n", invalid()),
		form("an invalid header", kind, "--b\r\nno header\r\n\r\nv"+end, invalid()),
		form("a field without name", kind, "--b\r\n\r\nv"+end, Outcome{}),
		form("NUL in a name", kind, "--b\r\nContent-Disposition: form-data; name=\"x\x00\"\r\n\r\nv"+end, invalid()),
		form("a name that is not UTF-8", kind, strings.Replace(part, "x", "\xff", 1)+end, invalid()),
		form("a value that is not UTF-8", kind, part+"\xff"+end, invalid()),
		form("a value longer than a megabyte", kind, part+strings.Repeat("a", 1<<20)+end, tooLarge()),
		form("2000 fields", kind, strings.Repeat(part+"\r\n", 2000)+end, tooLarge()),
		form("JSON", kind, `{"x":1}`, invalid()),
	}
}
