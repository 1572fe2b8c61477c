package fuzz

import (
	"strings"
)

// structures are whole bodies that are no object, or not only one, or whose brackets do not fit.
func structures() []sample {
	return []sample{
		{"nothing", "", Outcome{}},
		{"null", "null", Outcome{}},
		{"zero", "0", Outcome{}},
		{"an empty object", "{}", Outcome{}},
		{"white space around", " \t\r\n{…} \t\r\n", Outcome{}},
		{"white space within", "{…\n,\t\"x\" :\r[ 1 , 2 ] }", Outcome{}},
		{"white space only", " \n", invalid()},
		{"an array", "[]", invalid()},
		{"an array of objects", "[{…}]", invalid()},
		{"a string", `"x"`, invalid()},
		{"a number", "5", invalid()},
		{"true", "true", invalid()},
		{"false", "false", invalid()},
		{"an unclosed object", "{…", invalid()},
		{"an unclosed object after a comma", "{…,", invalid()},
		{"an unclosed object after a name", `{…,"x"`, invalid()},
		{"an unclosed object after a colon", `{…,"x":`, invalid()},
		{"an unclosed name", `{…,"x`, invalid()},
		{"an unclosed string", `{…,"x":"y`, invalid()},
		{"an unclosed array", `{…,"x":[1`, invalid()},
		{"an unclosed array in an object", `{…,"x":[1}`, invalid()},
		{"an unclosed object in an array", `{…,"x":[{]}`, invalid()},
		{"an opening brace only", "{", invalid()},
		{"a closing brace only", "}", invalid()},
		{"an opening bracket only", "[", invalid()},
		{"a closing brace too many", "{…}}", invalid()},
		{"a closing bracket too many", "{…}]", invalid()},
		{"text after the object", "{…} x", invalid()},
		{"a second object", "{…}{…}", invalid()},
		{"a second object in another line", "{…}\n{…}", invalid()},
		{"a comma after the object", "{…},", invalid()},
		{"a hash comment after the object", "{…}#", invalid()},
		{"NUL after the object", "{…}\x00", invalid()},
		{"NUL before the object", "\x00{…}", invalid()},
		{"NUL only", "\x00", invalid()},
		{"a word joiner before the object", "\u2060{…}", invalid()},
		{"XML", "<x/>", invalid()},
		{"form text", "a=b", invalid()},
		{"a backslash", `\`, invalid()},
		{"a quotation mark", `"`, invalid()},
		{"JavaScript", "var x = {…};", invalid()},
		{"a prefix against inclusion", ")]}'\n{…}", invalid()},
		{"text sequences", "\x1e{…}\n", invalid()},
	}
}

// separators are whole bodies whose commas, colons and blanks are wrong.
func separators() []sample {
	return []sample{
		{"a trailing comma", "{…,}", invalid()},
		{"a leading comma", "{,…}", invalid()},
		{"a comma twice", `{…,,"x":1}`, invalid()},
		{"a comma only", "{,}", invalid()},
		{"no comma", `{… "x":1}`, invalid()},
		{"a semicolon for a comma", `{…;"x":1}`, invalid()},
		{"a trailing comma in an array", `{…,"x":[1,]}`, invalid()},
		{"a leading comma in an array", `{…,"x":[,1]}`, invalid()},
		{"no comma in an array", `{…,"x":[1 2]}`, invalid()},
		{"a colon in an array", `{…,"x":["a":1]}`, invalid()},
		{"no colon", `{…,"x" 1}`, invalid()},
		{"a colon twice", `{…,"x"::1}`, invalid()},
		{"an equals sign for a colon", `{…,"x"=1}`, invalid()},
		{"a name without value", `{…,"x"}`, invalid()},
		{"a value without name", `{…,:1}`, invalid()},
		{"a block comment", "{…,/* c */\"x\":1}", invalid()},
		{"a line comment", "{…,// c\n\"x\":1}", invalid()},
		{"a form feed for a blank", "{…,\f\"x\":1}", invalid()},
		{"a vertical tab for a blank", "{…,\v\"x\":1}", invalid()},
		{"a no-break space for a blank", "{…,\u00a0\"x\":1}", invalid()},
	}
}

// literals are words where a value is due.
func literals() []sample {
	words := []string{
		"nul", "nulll", "True", "TRUE", "tru", "truetrue", "fals", "False", "Null", "NULL", "None", "nil", "undefined", "yes", "x",
		"NaN", "nan", "-NaN", "Infinity", "-Infinity", "inf", "∞", "'x'", "`x`", "$x", "@x", "(1)", "<1>", "0b1", "new Date()", "=1",
	}
	samples := []sample{{"the three of JSON", `{…,"x":[true,false,null]}`, Outcome{}}}
	for _, word := range words {
		samples = append(samples, sample{"the word " + word, `{…,"x":` + word + `}`, invalid()})
	}
	return samples
}

// numbers are values that begin like numbers.
func numbers() []sample {
	samples := []sample{
		{"a long integer", strings.Repeat("1234567890", 25), Outcome{}},
		{"a large exponent", "1e400", Outcome{}},
		{"a small exponent", "1e-400", Outcome{}},
		{"a huge exponent", "-1.5E+99999", Outcome{}},
		{"a long fraction", "0." + strings.Repeat("3", 200), Outcome{}},
		{"more than 256 bytes", strings.Repeat("9", 257), invalid()},
		{"a million digits", strings.Repeat("9", 1_000_000), invalid()},
	}
	for _, number := range []string{"-0", "0e0", "1E+2", "1.5e-3", "-1", "[0,-0.0,9007199254740993]"} {
		samples = append(samples, sample{"the number " + number, number, Outcome{}})
	}
	for _, number := range []string{
		"01", "-01", "00", "-012", "+1", "++1", ".5", "-.5", "1.", "-1.", "1.e3", "1e", "1e+", "1E-", "1ee2", "1e1.5", "1.2.3", "0x1F", "0X1f", "0o7",
		"1_000", "1 000", "1,000.0,", "--1", "-", "-x", "1a", "1e5x", "１", "1\u0660", "0.1e", "0e+", "2.e-3", "- 1", "1-1", "1/2", "0\x00", "1\u00bd", "1n", "1L",
	} {
		samples = append(samples, sample{"written as " + shown(number), number, invalid()})
	}
	return samples
}

// strs are values that begin with a quotation mark.
func strs() []sample {
	samples := []sample{
		{"every escape", `"\"\\\/\b\f\n\r\t\u00e9"`, Outcome{}},
		{"NUL, escaped", `"\u0000"`, Outcome{}},
		{"a surrogate pair, escaped", `"\ud83d\udea9"`, Outcome{}},
		{"a surrogate pair in capitals", `"\uD83D\uDEA9"`, Outcome{}},
		{"four bytes of UTF-8", `"🚩"`, Outcome{}},
		{"noncharacters", "\"\uffff\U0010ffff\"", Outcome{}},
		{"line separators", "\"\u2028\u2029\"", Outcome{}},
		{"delete", "\"\x7f\"", Outcome{}},
		{"a byte order mark within", "\"\ufeff\"", Outcome{}},
		{"an escaped backslash at the end", `"\\"`, Outcome{}},
		{"longer than a megabyte", `"` + strings.Repeat("a", 1<<20+1) + `"`, tooLarge()},
		{"half a pair, the high one", `"\ud800"`, invalid()},
		{"half a pair, the low one", `"\udc00"`, invalid()},
		{"a pair in the wrong order", `"\udea9\ud83d"`, invalid()},
		{"a high half and a letter", `"\ud800\u0041"`, invalid()},
		{"a high half twice", `"\ud800\ud800"`, invalid()},
		{"a high half and half an escape", `"\ud800\u"`, invalid()},
		{"a high half and a plain letter", `"\ud800a"`, invalid()},
		{"half a pair in UTF-8", "\"\xed\xa0\x80\"", invalid()},
		{"a pair of two in UTF-8", "\"\xed\xa0\xbd\xed\xba\xa9\"", invalid()},
		{"an unclosed escape", `"\`, invalid()},
		{"an escaped end", `"\"`, invalid()},
	}
	for _, escape := range []string{`\x41`, `\a`, `\v`, `\0`, `\'`, `\e`, `\U0041`, `\u`, `\u1`, `\u12`, `\u123`, `\u12G4`, `\u{41}`, `\u+041`, `\u-041`, `\u 041`, `\é`, `\🚩`, `\N`, "\\\n", "\\\x00"} {
		samples = append(samples, sample{"the escape " + shown(escape), `"` + escape + `"`, invalid()})
	}
	for _, control := range []string{"\x00", "\x01", "\x08", "\t", "\n", "\r", "\x0b", "\x0c", "\x1b", "\x1f"} {
		samples = append(samples, sample{"the raw control character " + shown(control), `"a` + control + `b"`, invalid()})
	}
	for _, bad := range []struct{ name, text string }{
		{"a byte FF", "\xff"}, {"a byte FE", "\xfe"}, {"a byte of Latin-1", "\xe9"}, {"a lone continuation", "\x80"}, {"continuations only", "\xbf\xbf"},
		{"NUL in two bytes", "\xc0\x80"}, {"a slash in two bytes", "\xc0\xaf"}, {"a slash in three bytes", "\xe0\x80\xaf"},
		{"a slash in four bytes", "\xf0\x80\x80\xaf"}, {"a character cut after one byte", "\xe2"}, {"a character cut after two bytes", "\xe2\x82"},
		{"a character cut after three bytes", "\xf0\x9f\x9a"}, {"beyond U+10FFFF", "\xf4\x90\x80\x80"}, {"five bytes", "\xf8\x88\x80\x80\x80"},
		{"six bytes", "\xfc\x84\x80\x80\x80\x80"}, {"good, then bad", "é\xc3"},
	} {
		samples = append(samples, sample{"not UTF-8: " + bad.name, `"` + bad.text + `"`, invalid()})
	}
	return samples
}

// names are members whose names are odd, or there twice.
func names() []sample {
	return []sample{
		{"an empty one", `{…,"":1}`, Outcome{}},
		{"NUL, escaped", `{…,"\u0000":1}`, Outcome{}},
		{"two that differ in case", `{…,"x":1,"X":2}`, Outcome{}},
		{"the same at another depth", `{…,"x":{"x":{"x":1}}}`, Outcome{}},
		{"twice", `{…,"x":1,"x":2}`, invalid()},
		{"twice with the same value", `{…,"x":1,"x":1}`, invalid()},
		{"twice, once escaped", `{…,"x":1,"\u0078":2}`, invalid()},
		{"twice, empty", `{…,"":1,"":2}`, invalid()},
		{"twice, deep down", `{…,"x":[{"y":{"z":1,"z":2}}]}`, invalid()},
		{"every one twice", `{…,…}`, invalid()},
		{"a credential twice", `{…,"api_key":"a","api_key":"b"}`, invalid()},
		{"without quotation marks", `{…,x:1}`, invalid()},
		{"in single quotation marks", `{…,'x':1}`, invalid()},
		{"a number", `{…,1:1}`, invalid()},
		{"null", `{…,null:1}`, invalid()},
		{"an array", `{…,[]:1}`, invalid()},
		{"an object", `{…,{}:1}`, invalid()},
		{"half a pair", `{…,"\ud800":1}`, invalid()},
		{"a bad escape", `{…,"\x41":1}`, invalid()},
		{"a raw control character", "{…,\"\x01\":1}", invalid()},
		{"NUL, raw", "{…,\"\x00\":1}", invalid()},
		{"not UTF-8", "{…,\"\xff\":1}", invalid()},
		{"longer than a megabyte", `{…,"` + strings.Repeat("n", 1<<20+1) + `":1}`, tooLarge()},
	}
}

// nestings are values that are deep or many.
func nestings() []sample {
	nested := func(depth int, open, inner, end string) string {
		return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
	}
	return []sample{
		{"511 arrays", nested(511, "[", "", "]"), Outcome{}},
		{"511 objects", nested(511, `{"":`, "1", "}"), Outcome{}},
		{"512 arrays", nested(512, "[", "", "]"), invalid()},
		{"512 objects", nested(512, `{"":`, "1", "}"), invalid()},
		{"100000 arrays", nested(100_000, "[", "", "]"), invalid()},
		{"100000 arrays, none closed", strings.Repeat("[", 100_000), invalid()},
		{"100000 objects, none closed", strings.Repeat(`{"":`, 100_000), invalid()},
		{"100000 arrays of objects, none closed", strings.Repeat(`[{"":`, 100_000), invalid()},
		{"100000 elements", "[" + strings.Repeat("0,", 99_999) + "0]", Outcome{}},
		{"300000 elements", "[" + strings.Repeat("0,", 299_999) + "0]", tooLarge()},
	}
}

// encodings are bodies in other character sets, or not of characters.
func encodings() []sample {
	wide := func(order, text string) string {
		var out strings.Builder
		for i := range len(text) {
			if order == "big" {
				out.WriteByte(0)
			}
			out.WriteByte(text[i])
			if order == "little" {
				out.WriteByte(0)
			}
		}
		return out.String()
	}
	return []sample{
		{"a byte order mark", "\ufeff{…}", invalid()},
		{"a byte order mark twice", "\ufeff\ufeff{…}", invalid()},
		{"a byte order mark only", "\ufeff", invalid()},
		{"a byte order mark after the object", "{…}\ufeff", invalid()},
		{"half a byte order mark", "\xef\xbb{…}", invalid()},
		{"UTF-16, little end first", "\xff\xfe" + wide("little", "{}"), invalid()},
		{"UTF-16, big end first", "\xfe\xff" + wide("big", "{}"), invalid()},
		{"UTF-16 without a mark, little end first", wide("little", "{}"), invalid()},
		{"UTF-16 without a mark, big end first", wide("big", "{}"), invalid()},
		{"UTF-32", "\xff\xfe\x00\x00{\x00\x00\x00}\x00\x00\x00", invalid()},
		{"UTF-7", "+AHsAfQ-", invalid()},
		{"EBCDIC", "\xc0\xd0", invalid()},
		{"base64", "e30=", invalid()},
		{"gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00", invalid()},
		{"CBOR", "\xa1axaA", invalid()},
		{"MessagePack", "\x81\xa1x\x01", invalid()},
		{"BSON", "\x05\x00\x00\x00\x00", invalid()},
		{"a picture", "\x89PNG\r\n\x1a\n", invalid()},
	}
}
