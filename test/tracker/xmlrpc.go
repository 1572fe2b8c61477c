package tracker

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// xmlValue is one value of XML-RPC; at most one of its members is there.
type xmlValue struct {
	Text     string     `xml:",chardata"`
	Int      *string    `xml:"int"`
	I4       *string    `xml:"i4"`
	I8       *string    `xml:"i8"`
	Boolean  *string    `xml:"boolean"`
	String   *string    `xml:"string"`
	Double   *string    `xml:"double"`
	DateTime *string    `xml:"dateTime.iso8601"`
	Base64   *string    `xml:"base64"`
	Nil      *struct{}  `xml:"nil"`
	Array    *xmlArray  `xml:"array"`
	Struct   *xmlStruct `xml:"struct"`
}

type xmlArray struct {
	Values []xmlValue `xml:"data>value"`
}

type xmlStruct struct {
	Members []struct {
		Name  string   `xml:"name"`
		Value xmlValue `xml:"value"`
	} `xml:"member"`
}

type xmlCall struct {
	Method string     `xml:"methodName"`
	Params []xmlValue `xml:"params>param>value"`
}

// planXMLRPC reads an XML-RPC call. HEAD is answered with 200, which clients use as a probe (clients.md 3).
func (s *Server) planXMLRPC(r *http.Request) plan {
	if r.Method != http.MethodPost {
		return plan{op: "xmlrpc.probe", run: func() *reply {
			a := newReply(http.StatusOK)
			a.header.Set("Content-Type", "text/xml")
			return a
		}}
	}
	return s.planProcedure(r, readXMLRPC(r), s.xmlRPCReply)
}

func readXMLRPC(r *http.Request) procedureCall {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	var c xmlCall
	if err == nil {
		err = xml.Unmarshal(raw, &c)
	}
	if err != nil {
		return procedureCall{err: fail(codeUser, "the call is no XML-RPC: %v", err)}
	}
	p := procedureCall{method: c.Method, params: object{}}
	if len(c.Params) > 0 {
		if o, ok := c.Params[0].value("").(object); ok {
			p.params = o
		}
	}
	return p
}

// value turns XML-RPC into a request value. The member named data stays base64, because that is what REST sends.
func (v xmlValue) value(name string) any {
	switch {
	case v.Nil != nil:
		return nil
	case v.Struct != nil:
		o := object{}
		for _, m := range v.Struct.Members {
			o[m.Name] = m.Value.value(m.Name)
		}
		return o
	case v.Array != nil:
		return v.Array.list()
	case v.Base64 != nil:
		if name == "data" {
			return *v.Base64
		}
		return string(decodeBase64(*v.Base64))
	}
	for _, number := range []*string{v.Int, v.I4, v.I8, v.Boolean} {
		if number != nil {
			n, _ := strconv.ParseInt(trim(*number), 10, 64)
			return n
		}
	}
	for _, s := range []*string{v.String, v.DateTime, v.Double} {
		if s != nil {
			return plainData(name, *s)
		}
	}
	return plainData(name, v.Text)
}

func (a xmlArray) list() []any {
	out := []any{}
	for _, e := range a.Values {
		out = append(out, e.value(""))
	}
	return out
}

// plainData encodes content that was sent as a string, which XML-RPC takes for the content itself.
func plainData(name, s string) any {
	if name == "data" {
		return base64.StdEncoding.EncodeToString([]byte(s))
	}
	return s
}

func (s *Server) xmlRPCReply(_ procedureCall, o outcome) *reply {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><methodResponse>`)
	if f := asFailure(o.err); f != nil {
		b.WriteString("<fault>")
		writeXML(&b, "", object{"faultCode": f.code, "faultString": f.message})
		b.WriteString("</fault>")
	} else {
		b.WriteString("<params><param>")
		writeXML(&b, "", o.result)
		b.WriteString("</param></params>")
	}
	b.WriteString("</methodResponse>")
	a := newReply(http.StatusOK)
	s.commonHeaders(a, o)
	a.header.Set("Content-Type", "text/xml")
	a.body, a.sized = []byte(b.String()), true
	return a
}

// timeMembers are the members of answers that are points in time.
var timeMembers = []string{"creation_time", "last_change_time", "creation_date", "modification_date", "time", "db_time", "web_time", "web_time_utc"}

func writeXML(b *strings.Builder, name string, v any) {
	b.WriteString("<value>")
	switch v := v.(type) {
	case nil:
		b.WriteString("<nil/>")
	case bool:
		fmt.Fprintf(b, "<boolean>%s</boolean>", text(v))
	case int:
		fmt.Fprintf(b, "<int>%d</int>", v)
	case string:
		writeXMLText(b, name, v)
	case []any:
		b.WriteString("<array><data>")
		for _, e := range v {
			writeXML(b, "", e)
		}
		b.WriteString("</data></array>")
	case object:
		b.WriteString("<struct>")
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b.WriteString("<member><name>" + html.EscapeString(k) + "</name>")
			writeXML(b, k, v[k])
			b.WriteString("</member>")
		}
		b.WriteString("</struct>")
	}
	b.WriteString("</value>")
}

func writeXMLText(b *strings.Builder, name, s string) {
	switch {
	case name == "data":
		b.WriteString("<base64>" + s + "</base64>")
	case slices.Contains(timeMembers, name):
		b.WriteString("<dateTime.iso8601>" + strings.TrimSuffix(strings.ReplaceAll(s, "-", ""), "Z") + "</dateTime.iso8601>")
	default:
		b.WriteString("<string>")
		_ = xml.EscapeText(b, []byte(s))
		b.WriteString("</string>")
	}
}
