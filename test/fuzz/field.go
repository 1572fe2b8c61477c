package fuzz

import (
	"strings"

	"portico/mapping"
)

// Target is one operation that writes, with a request that it would carry out.
type Target struct {
	Operation    mapping.Operation
	Method, Path string
	// Members are those of a good JSON body, without the braces; Form is the same as a form.
	Members, Form string
}

// Targets are the four operations that write.
func Targets() []Target {
	return []Target{
		{mapping.OpCreateFlagType, "POST", "/rest/flag_type", `"name":"n","description":"d"`, "name=n&description=d"},
		{mapping.OpUpdateFlagTypes, "PUT", "/rest/flag_type/7", `"sortkey":5`, "sortkey=5"},
		{
			mapping.OpCreateAttachment, "POST", "/rest/bug/5/attachment",
			`"data":"YQ==","file_name":"f","summary":"s","content_type":"text/plain"`,
			"data=YQ%3D%3D&file_name=f&summary=s&content_type=text/plain",
		},
		{mapping.OpUpdateAttachments, "PUT", "/rest/bug/attachment/5", `"summary":"s"`, "summary=s"},
	}
}

// fields are values that are JSON, but not what the field takes.
func fields() []Class {
	flagTypes := []mapping.Operation{mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes}
	attachments := []mapping.Operation{mapping.OpCreateAttachment, mapping.OpUpdateAttachments}
	updateType := []mapping.Operation{mapping.OpUpdateFlagTypes}
	updateAttachment := []mapping.Operation{mapping.OpUpdateAttachments}
	createAttachment := []mapping.Operation{mapping.OpCreateAttachment}
	return append(
		payloads(),
		field(flagTypes, "is_active", `[]`, mapping.CodeBadParameter), field(flagTypes, "is_active", `"perhaps"`, mapping.CodeBadParameter),
		field(flagTypes, "is_requestable", `1e400`, mapping.CodeBadParameter), field(flagTypes, "grant_group", `{}`, mapping.CodeNotFound),
		field(flagTypes, "inclusions", `"P"`, mapping.CodeBadParameter), field(flagTypes, "inclusions", `[[]]`, mapping.CodeBadParameter),
		field(flagTypes, "inclusions", `[null]`, mapping.CodeRequired), field(flagTypes, "exclusions", `{"P":"c"}`, mapping.CodeBadParameter),
		field(flagTypes, "inclusions", `{"P":null}`, mapping.CodeBadParameter), field(flagTypes, "exclusions", `[{"P":null}]`, mapping.CodeBadParameter),
		field(flagTypes, "inclusions", `[true]`, mapping.CodeBadParameter), field(flagTypes, "inclusions", `{"P":[true]}`, mapping.CodeBadParameter),
		field(flagTypes, "inclusions", `{"P":[null]}`, mapping.CodeRequired),
		field(flagTypes, "inclusions", `{"P Q":["c"]}`, mapping.CodeBadParameter), field(flagTypes, "cc_list", `[{}]`, mapping.CodeBadAddress),
		field(flagTypes, "cc_list", `["a b"]`, mapping.CodeBadAddress),
		field(updateType, "ids", `[1e400]`, mapping.CodeNotNumeric), field(updateType, "ids", `[99999999999999999999]`, mapping.CodeNotFound),
		field(updateType, "ids", `[{}]`, mapping.CodeNotNumeric), field(updateType, "ids", `[-1]`, mapping.CodeNotNumeric),
		field(updateType, "ids", `"1\u0000"`, mapping.CodeNotNumeric), field(updateType, "names", `{}`, mapping.CodeBadParameter),
		field([]mapping.Operation{mapping.OpCreateFlagType}, "sortkey", `1e400`, mapping.CodeSortkey),
		field([]mapping.Operation{mapping.OpCreateFlagType}, "sortkey", `99999999999999999999`, mapping.CodeSortkey),
		field([]mapping.Operation{mapping.OpCreateFlagType}, "sortkey", `1.5`, mapping.CodeSortkey),
		field([]mapping.Operation{mapping.OpCreateFlagType}, "sortkey", `-1`, mapping.CodeSortkey),
		field([]mapping.Operation{mapping.OpCreateFlagType}, "target_type", `["bug"]`, mapping.CodeTargetType),
		field(updateAttachment, "ids", `[1e400]`, mapping.CodeNotNumeric), field(updateAttachment, "ids", `[99999999999999999999]`, mapping.CodeJSON),
		field(attachments, "ids", `{}`, mapping.CodeNotScalars), field(updateAttachment, "ids", `[5,null]`, mapping.CodeTargetType),
		field(attachments, "ids", `[5,true]`, mapping.CodeNotScalars), field(attachments, "ids", `true`, mapping.CodeNotScalars),
		field(updateType, "ids", `[true]`, mapping.CodeNotNumeric), field(updateType, "names", `[true]`, mapping.CodeBadParameter),
		field(createAttachment, "ids", `[null]`, mapping.CodeBadBug),
		field(updateAttachment, "ids", `[]`, mapping.CodeBadParameter), field(updateAttachment, "ids", `null`, mapping.CodeTargetType),
		field(createAttachment, "ids", `[[5]]`, mapping.CodeNotScalars),
		field(attachments, "is_patch", `{}`, mapping.CodeBadParameter), field(attachments, "comment", `[]`, mapping.CodeBadParameter),
		field(attachments, "flags", `"x"`, mapping.CodeBadParameter), field(attachments, "flags", `[5]`, mapping.CodeBadParameter),
		field(attachments, "flags", `[null]`, mapping.CodeRequired), field(attachments, "flags", `[{"status":"?"}]`, mapping.CodeRequired),
		field(attachments, "flags", `[{"name":"r","status":"\u0000"}]`, mapping.CodeFlagStatus),
		field(attachments, "flags", `[{"type_id":1e400,"status":"?"}]`, mapping.CodeNotFound),
		field(attachments, "flags", `[{"name":"r","status":["?"]}]`, mapping.CodeFlagStatus),
		field(attachments, "flags", `[{"id":true,"status":"X"}]`, mapping.CodeBadParameter),
		field(attachments, "flags", `[{"type_id":true,"status":"?"}]`, mapping.CodeBadParameter),
		field(attachments, "flags", `[{"name":{},"status":"?"}]`, mapping.CodeBadParameter),
	)
}

func field(on []mapping.Operation, name, value string, code int) Class {
	resource, _, _ := strings.Cut(string(on[0]), ".")
	class := texts("Fields", []sample{{resource + " " + name + ": " + value, `{` + good + `,"` + name + `":` + value + `}`, Outcome{mapping.StatusOf(code), code}}})[0]
	class.On = on
	return class
}

// payloads are values of the member data.
func payloads() []Class {
	var classes []Class
	for _, s := range []sample{
		{"without padding", `"YQ"`, Outcome{}},
		{"with line breaks", `"YQ\r\n=="`, Outcome{}},
		{"with escapes", `"\u0059Q=\u003d"`, Outcome{}},
		{"empty", `""`, Outcome{400, mapping.CodeDataEmpty}},
		{"not base64", `"%%%%"`, Outcome{400, mapping.CodeDataEmpty}},
		{"of the alphabet for addresses", `"_-_-"`, Outcome{400, mapping.CodeDataEmpty}},
		{"a data address", `"data:text/plain;base64,YQ=="`, Outcome{400, mapping.CodeDataEmpty}},
		{"padding in the middle", `"YQ==YQ=="`, Outcome{400, mapping.CodeDataEmpty}},
		{"padding only", `"===="`, Outcome{400, mapping.CodeDataEmpty}},
		{"one character in a group", `"YWFhY"`, Outcome{400, mapping.CodeDataEmpty}},
		{"too much padding", `"YQ==="`, Outcome{400, mapping.CodeDataEmpty}},
		{"NUL, escaped", `"YQ\u0000="`, Outcome{400, mapping.CodeDataEmpty}},
		{"a letter that is not ASCII", `"YQé="`, Outcome{400, mapping.CodeDataEmpty}},
		{"null", `null`, Outcome{400, mapping.CodeRequired}},
		{"an array", `["YQ=="]`, Outcome{400, mapping.CodeBadParameter}},
		{"an object", `{"data":"YQ=="}`, Outcome{400, mapping.CodeBadParameter}},
		{"twice", `"YQ==","data":"YQ=="`, invalid()},
		{"half a pair", `"\ud800"`, invalid()},
		{"a bad escape", `"\x41"`, invalid()},
		{"NUL, raw", "\"YQ\x00=\"", invalid()},
		{"a raw line break", "\"YQ\n==\"", invalid()},
		{"not UTF-8", "\"YQ\xff=\"", invalid()},
		{"unclosed", `"YQ==`, invalid()},
	} {
		text := `{"data":` + s.text + `,"file_name":"f","summary":"s","content_type":"text/plain"}`
		class := texts("Payloads", []sample{{s.name, text, s.outcome}})[0]
		class.On, class.By, class.Shown = []mapping.Operation{mapping.OpCreateAttachment}, nil, shown(`{"data":`+s.text+",…}")
		classes = append(classes, class)
	}
	return classes
}
