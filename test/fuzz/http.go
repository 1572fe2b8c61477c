package fuzz

import (
	"fmt"
	"strings"

	"portico/mapping"
)

// framings are bodies whose length is told wrongly.
func framings() []Class {
	framed := func(name, shown string, outcome Outcome, header string, body func(string) string) Class {
		return Class{
			Group: "Framing", Name: name, Types: []string{"application/json"}, Shown: shown, Outcome: outcome,
			Raw: func(to Target, contentType string) string {
				text := "{" + to.Members + "}"
				head := strings.ReplaceAll(header, "LEN", fmt.Sprint(len(text)))
				return "Content-Type: " + contentType + "\r\n" + head + "\r\n\r\n" + body(text)
			},
		}
	}
	cut := func(name, shown string, outcome Outcome, header string, body func(string) string) Class {
		class := framed(name, shown, outcome, header, body)
		class.Cut = true
		return class
	}
	// Only a client that closes just its own side sees it.
	gone := Outcome{499, 200499}
	plain := func(text string) string { return text }
	const chunked = "Transfer-Encoding: chunked"
	chunk := func(format string) func(string) string {
		return func(text string) string { return fmt.Sprintf(format, len(text), text) }
	}
	return []Class{
		framed("a length", "Content-Length: LEN", Outcome{}, "Content-Length: LEN", plain),
		framed("the same length twice", "Content-Length: LEN, twice", Outcome{}, "Content-Length: LEN\r\nContent-Length: LEN", plain),
		cut("longer than the body", "Content-Length: LEN9", gone, "Content-Length: LEN9", plain),
		framed("shorter than the body", "Content-Length: 5", invalid(), "Content-Length: 5", plain),
		framed("two lengths", "Content-Length: LEN and 5", invalid(), "Content-Length: LEN\r\nContent-Length: 5", plain),
		framed("a negative length", "Content-Length: -1", invalid(), "Content-Length: -1", plain),
		framed("a length with a sign", "Content-Length: +LEN", invalid(), "Content-Length: +LEN", plain),
		framed("a length that is a word", "Content-Length: many", invalid(), "Content-Length: many", plain),
		framed("a length that is no integer", "Content-Length: LEN.0", invalid(), "Content-Length: LEN.0", plain),
		framed("a length beyond 64 bits", "Content-Length: 99999999999999999999", invalid(), "Content-Length: 99999999999999999999", plain),
		framed("a length beyond the limit", "Content-Length: 99999999999", tooLarge(), "Content-Length: 99999999999", plain),
		framed("chunks", "one chunk and the last", Outcome{}, chunked, chunk("%x\r\n%s\r\n0\r\n\r\n")),
		framed("a chunk with an extension", "LEN;a=b", Outcome{}, chunked, chunk("%x;a=b\r\n%s\r\n0\r\n\r\n")),
		framed("an invalid chunk size", "zz", invalid(), chunked, chunk("zz%d\r\n%s\r\n0\r\n\r\n")),
		framed("a negative chunk size", "-LEN", invalid(), chunked, chunk("-%x\r\n%s\r\n0\r\n\r\n")),
		framed("a huge chunk size", "ffffffffffffffffff", invalid(), chunked, chunk("ffffffffffffffff%x\r\n%s\r\n0\r\n\r\n")),
		framed("a chunk longer than told", "1 too few", invalid(), chunked, func(text string) string {
			return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text)-1, text)
		}),
		cut("a chunk shorter than told", "8 too many", invalid(), chunked, func(text string) string {
			return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text)+8, text)
		}),
		cut("no last chunk", "cut after the chunk", gone, chunked, chunk("%x\r\n%s\r\n")),
		cut("cut within a chunk", "cut", gone, chunked, func(text string) string { return fmt.Sprintf("%x\r\n%s", len(text), text[:5]) }),
		cut("cut within a chunk size", "cut", gone, chunked, func(string) string { return "1" }),
		cut("no chunk at all", "cut before the first chunk", gone, chunked, func(string) string { return "" }),
		cut("a body without chunks", "{…}", gone, chunked, plain),
		framed("chunks and a length, where the chunks count", "both", Outcome{}, chunked+"\r\nContent-Length: LEN", chunk("%x\r\n%s\r\n0\r\n\r\n")),
		framed("another transfer coding", "Transfer-Encoding: gzip, chunked", Outcome{501, mapping.CodeUnsupported}, "Transfer-Encoding: gzip, chunked", chunk("%x\r\n%s\r\n0\r\n\r\n")),
		framed("a compressed body", "Content-Encoding: gzip", invalid(), "Content-Encoding: gzip\r\nContent-Length: LEN", plain),
		framed("an unknown coding", "Content-Encoding: x", invalid(), "Content-Encoding: x\r\nContent-Length: LEN", plain),
	}
}

// headers are good bodies under headers that are wrong.
func headers() []Class {
	headed := func(name, line string, outcome Outcome) Class {
		return Class{
			Group: "Headers", Name: name, Types: []string{"application/json"}, Shown: shown(line), Outcome: outcome,
			Raw: func(to Target, contentType string) string {
				return line + "\r\n" + with(contentType, "{"+to.Members+"}")
			},
		}
	}
	return []Class{
		headed("not UTF-8", "X: \xff", Outcome{}),
		headed("no colon", "no header", invalid()),
		headed("no name", ": x", invalid()),
		headed("a blank in the name", "X Y: x", invalid()),
		headed("a blank before the colon", "X : x", invalid()),
		headed("a name that is not ASCII", "\xe9: x", invalid()),
		headed("NUL in the value", "X: \x00", invalid()),
		headed("a control character in the value", "X: \x01", invalid()),
		headed("two hosts", "Host: other.example.com", invalid()),
		headed("more than fits", "X: "+strings.Repeat("x", 64<<10), Outcome{431, 200431}),
	}
}

// addresses are good bodies for bad addresses.
func addresses() []Class {
	at := func(name, suffix string, outcome Outcome) Class {
		return Class{
			Group: "Addresses", Name: name, Types: []string{"application/json"}, Shown: shown(suffix), Outcome: outcome,
			Path: func(to Target) string { return to.Path + suffix },
			Raw:  func(to Target, contentType string) string { return with(contentType, "{"+to.Members+"}") },
		}
	}
	gone := Outcome{404, mapping.CodeNoResource}
	return []Class{
		at("a bad escape in the query", "?x=%zz", Outcome{}),
		at("a bad escape in the path", "%zz", invalid()),
		at("half an escape in the path", "%4", invalid()),
		at("not UTF-8 in the query", "?x=%ff", invalid()),
		at("not UTF-8 in a name in the query", "?%ff=x", invalid()),
		at("not UTF-8, raw", "?x=\xff", invalid()),
		at("NUL in the query, raw", "?x=\x00", invalid()),
		at("a blank", " x", invalid()),
		at("a trailing slash", "/", gone),
		at("a path that climbs out", "/../../../../../etc", invalid()),
		at("an encoded path that climbs out", "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc", invalid()),
		at("longer than 8190 bytes", "?x="+strings.Repeat("x", 8190), Outcome{414, mapping.CodeURILong}),
	}
}

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
