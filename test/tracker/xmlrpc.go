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

// xmlNode is an element of XML.
type xmlNode struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []xmlNode `xml:",any"`
}

// child gives the first element with a path of names below a node, or an empty one.
func (n xmlNode) child(path ...string) xmlNode {
	for _, name := range path {
		i := slices.IndexFunc(n.Children, func(c xmlNode) bool { return c.XMLName.Local == name })
		if i < 0 {
			return xmlNode{}
		}
		n = n.Children[i]
	}
	return n
}

// planXMLRPC reads an XML-RPC call. HEAD is answered with 200, which clients use as a probe (docs/reference/clients.md).
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
	var c xmlNode
	if err == nil {
		err = xml.Unmarshal(raw, &c)
	}
	if err != nil {
		return procedureCall{err: fail(codeUser, "the call is no XML-RPC: %v", err)}
	}
	p := procedureCall{method: c.child("methodName").Text}
	p.params, _ = c.child("params", "param", "value").value("").(object)
	return p
}

// value turns XML-RPC into a request value. The member named data stays base64, because that is what REST sends.
func (n xmlNode) value(name string) any {
	if len(n.Children) == 0 {
		return plainData(name, n.Text)
	}
	switch v := n.Children[0]; v.XMLName.Local {
	case "nil":
		return nil
	case "struct":
		o := object{}
		for _, m := range v.Children {
			key := m.child("name").Text
			o[key] = m.child("value").value(key)
		}
		return o
	case "array":
		return listOf(v.child("data").Children, func(e xmlNode) any { return e.value("") })
	case "base64":
		if name == "data" {
			return v.Text
		}
		return string(decodeBase64(v.Text))
	case "int", "i4", "i8", "boolean":
		number, _ := strconv.ParseInt(trim(v.Text), 10, 64)
		return number
	default:
		return plainData(name, v.Text)
	}
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
			if v[k] != nil { // what is undefined is left out, since many clients do not know <nil/>
				b.WriteString("<member><name>" + html.EscapeString(k) + "</name>")
				writeXML(b, k, v[k])
				b.WriteString("</member>")
			}
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
