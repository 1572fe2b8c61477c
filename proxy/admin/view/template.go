package view

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"reflect"
	"sync"
	"text/template/parse"
	"time"
)

// FuncMap are functions that templates call, by name. Each returns one value; none takes a variable number of them.
type FuncMap map[string]any

// Set is a set of templates that may call each other. It never changes, and is safe for concurrent use.
type Set struct {
	trees     func() map[string]*parse.Tree
	functions FuncMap
}

// Pieces are the templates that every set has.
//
//go:embed html
var Pieces embed.FS

// New returns the templates in the .html files in the folder html of a file system that is part of the program. They are parsed when the first one is
// executed, since most processes show no page. The tests of this package check that every value stands where escaping makes it harmless.
func New(files fs.FS, own FuncMap) *Set {
	s := &Set{functions: commonFunctions()}
	maps.Copy(s.functions, own)
	s.trees = sync.OnceValue(func() map[string]*parse.Tree { return mustParse(files, s.functions) })
	return s
}

func mustParse(files fs.FS, functions FuncMap) map[string]*parse.Tree {
	trees := map[string]*parse.Tree{}
	for _, folder := range []fs.FS{Pieces, files} {
		paths, _ := fs.Glob(folder, "html/*.html") // the pattern is a good one
		for _, path := range paths {
			text, _ := fs.ReadFile(folder, path) // it is there
			if _, err := parse.New(path[len("html/"):]).Parse(string(text), "", "", trees, functions); err != nil {
				panic(err)
			}
		}
	}
	return trees
}

// Execute appends what the template with a name makes of data. After an error a part of it is there.
func (s *Set) Execute(out *bytes.Buffer, name string, data any) (err error) {
	defer func() {
		if cause := recover(); cause != nil { // such as a field that data does not have
			err = fmt.Errorf("execute template %s: %v", name, cause)
		}
	}()
	s.call(out, name, data)
	return nil
}

// call executes a template with variables of its own.
func (s *Set) call(out *bytes.Buffer, name string, dot any) {
	execution{s, out, map[string]any{"$": dot}}.run(s.trees()[name].Root, dot)
}

// execution writes one template. It panics if that cannot be done. A variable keeps its value after the branch that declares it.
type execution struct {
	*Set
	out  *bytes.Buffer
	vars map[string]any
}

// run executes a node.
func (e execution) run(node parse.Node, dot any) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil { // no else
			return
		}
		for _, each := range n.Nodes {
			e.run(each, dot)
		}
	case *parse.TextNode:
		e.out.Write(n.Text)
	case *parse.ActionNode:
		if value := e.value(n.Pipe, dot); len(n.Pipe.Decl) == 0 {
			e.out.WriteString(html.EscapeString(text(value)))
		}
	case *parse.IfNode:
		e.branch(&n.BranchNode, dot)
	case *parse.WithNode:
		e.branch(&n.BranchNode, dot)
	case *parse.RangeNode:
		e.branch(&n.BranchNode, dot)
	case *parse.TemplateNode:
		e.call(e.out, n.Name, e.value(n.Pipe, dot))
	}
}

// branch executes one of two lists, the first one for each element of a range.
func (e execution) branch(n *parse.BranchNode, dot any) {
	value := e.value(n.Pipe, dot)
	switch {
	case !truth(value):
		e.run(n.ElseList, dot)
	case n.NodeType == parse.NodeRange:
		list := reflect.ValueOf(value)
		for i := range list.Len() {
			values := []any{i, list.Index(i).Interface()}
			for at, name := range n.Pipe.Decl {
				e.vars[name.Ident[0]] = values[at+2-len(n.Pipe.Decl)]
			}
			e.run(n.List, values[1])
		}
	case n.NodeType == parse.NodeWith:
		e.run(n.List, value)
	default:
		e.run(n.List, dot)
	}
}

// value evaluates a node, and sets the variable that it declares.
func (e execution) value(node parse.Node, dot any) (value any) {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return field(dot, n.Ident)
	case *parse.VariableNode:
		return field(e.vars[n.Ident[0]], n.Ident[1:])
	case *parse.StringNode:
		return n.Text
	case *parse.NumberNode:
		return int(n.Int64)
	case *parse.PipeNode:
		if n == nil {
			return nil
		}
		value = e.command(n.Cmds[0], dot)
		for _, name := range n.Decl {
			e.vars[name.Ident[0]] = value
		}
		return value
	}
	panic(fmt.Sprint("not supported: ", node))
}

// command calls a function, or evaluates the only node. A call converts operands to what the function takes.
func (e execution) command(n *parse.CommandNode, dot any) any {
	name, isCall := n.Args[0].(*parse.IdentifierNode)
	if !isCall {
		return e.value(n.Args[0], dot)
	}
	function := reflect.ValueOf(e.functions[name.Ident])
	operands := make([]reflect.Value, len(n.Args)-1)
	for i := range operands {
		takes := function.Type().In(i)
		if value := e.value(n.Args[i+1], dot); value == nil {
			operands[i] = reflect.Zero(takes)
		} else {
			operands[i] = reflect.ValueOf(value).Convert(takes)
		}
	}
	return function.Call(operands)[0].Interface()
}

// field returns a field of a field of a value. What a map does not have is nil.
func field(value any, names []string) any {
	for _, name := range names {
		v := reflect.Indirect(reflect.ValueOf(value))
		if v.Kind() != reflect.Map {
			v = v.FieldByName(name)
		} else if v = v.MapIndex(reflect.ValueOf(name)); !v.IsValid() {
			return nil
		}
		value = v.Interface()
	}
	return value
}

// truth reports whether a value is neither nil, zero nor empty.
func truth(value any) bool {
	if t, isTime := value.(time.Time); isTime {
		return !t.IsZero()
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Map, reflect.Slice:
		return v.Len() > 0
	}
	return !v.IsZero()
}

// text writes a value. A nil is an empty text.
func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
