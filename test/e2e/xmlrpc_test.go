package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// xmlCall writes an XML-RPC call with one struct.
func xmlCall(method, members string) string {
	return "<?xml version='1.0'?>\n<methodCall>\n<methodName>" + method + "</methodName>\n<params>\n<param>\n<value><struct>\n" +
		members + "\n</struct></value>\n</param>\n</params>\n</methodCall>\n"
}

// xmlMember writes a member of an XML-RPC struct.
func xmlMember(name, value string) string {
	return "<member><name>" + name + "</name><value>" + value + "</value></member>"
}

func xmlText(name, value string) string { return xmlMember(name, "<string>"+value+"</string>") }

func xmlIDs(name string, ids ...int) string {
	list := ""
	for _, id := range ids {
		list += fmt.Sprintf("<value><int>%d</int></value>", id)
	}
	return xmlMember(name, "<array><data>"+list+"</data></array>")
}

// oneLine writes a call for a step.
func oneLine(call string) string { return strings.ReplaceAll(call, "\n", "") }

// xmlOf writes a call with the members of a JSON object, in which {"base64":TEXT} stands for content.
func xmlOf(method, object string) (string, error) {
	var members map[string]any
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		return "", err
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(members)) {
		text += xmlMember(name, xmlValue(members[name]))
	}
	return oneLine(xmlCall(method, text)), nil
}

func xmlValue(value any) string {
	switch value := value.(type) {
	case float64:
		return fmt.Sprintf("<int>%d</int>", int(value))
	case bool:
		return fmt.Sprintf("<boolean>%d</boolean>", map[bool]int{true: 1}[value])
	case []any:
		list := ""
		for _, one := range value {
			list += "<value>" + xmlValue(one) + "</value>"
		}
		return "<array><data>" + list + "</data></array>"
	case map[string]any:
		return fmt.Sprintf("<base64>%s</base64>", value["base64"])
	}
	return fmt.Sprintf("<string>%s</string>", value)
}
