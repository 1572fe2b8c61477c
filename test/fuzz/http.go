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
