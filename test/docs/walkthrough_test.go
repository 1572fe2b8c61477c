package docs

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

// block is one fenced block of a page: commands, or what they print.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks gives the fenced blocks of a page in their order.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	var all []block
	for _, found := range fence.FindAllStringSubmatch(read(t, page), -1) {
		all = append(all, block{found[1], found[2]})
	}
	return all
}

// elsewhere are commands of the pages that other tests run: of the build, of the demo (cmd/portico) and of the Makefile.
var elsewhere = []string{"git clone ", "go build -o bin/ ./cmd/portico", "go run ./cmd/portico demo", "bin/portico demo", "make "}

// walk runs the commands of a page one after the other, as a reader would. The addresses of the page become free ones.
type walk struct {
	dir       string
	addresses *strings.Replacer
	// calls are commands of operators, each followed by itself with the address of this Portico.
	calls    []string
	listen   []string
	serving  *process.Process
	commands int
}

func newWalk(t *testing.T) *walk {
	clients, operators, old, next := process.FreeAddress(t), process.FreeAddress(t), process.FreeAddress(t), process.FreeAddress(t)
	w := &walk{dir: t.TempDir(), listen: []string{"--listen", clients, "--admin-listen", operators}}
	w.addresses = strings.NewReplacer("127.0.0.1:8080", clients, "127.0.0.1:8081", old, "127.0.0.1:8082", next, "127.0.0.1:9080", operators)
	for _, command := range []string{"explain", "migrate", "canary"} {
		call := "bin/portico " + command
		w.calls = append(w.calls, call, call+" --admin http://"+operators)
	}
	process.Must(t, os.Mkdir(filepath.Join(w.dir, "bin"), 0o755))
	process.Must(t, os.Symlink(process.Portico(t), filepath.Join(w.dir, "bin", "portico")))
	return w
}

// step runs the commands of one block and gives what they print. Those that serve go on in the background, as in a terminal of
// their own; a second portico serve takes the place of the first.
func (w *walk) step(t *testing.T, text string) string {
	t.Helper()
	text = strings.NewReplacer(w.calls...).Replace(w.addresses.Replace(text))
	words := strings.Fields(text)
	if len(words) > 1 && words[0] == "bin/portico" && slices.Contains([]string{"serve", "tracker"}, words[1]) {
		w.commands++
		w.background(t, words[1:])
		return ""
	}
	var script []string
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
			script = append(script, line)
			w.commands++
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxStep)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", strings.Join(script, ""))
	shell.Dir, shell.WaitDelay = w.dir, time.Second
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%s\n%v\n%s", text, err, output)
	}
	return string(output)
}

// maxStep ends commands that wait for something that does not come.
const maxStep = 3 * time.Minute

func (w *walk) background(t *testing.T, args []string) {
	t.Helper()
	spec := process.Spec{Program: filepath.Join(w.dir, "bin", "portico"), Args: args, Dir: w.dir}
	address := w.listen[1]
	if args[0] == "tracker" {
		address = args[slices.Index(args, "--listen")+1]
	} else {
		if w.serving != nil {
			w.serving.Stop(t)
		}
		spec.Args = append(args, w.listen...)
	}
	spec.Ready = func(*process.Process) bool { return process.Listens(address) }
	started := process.Launch(t, spec)
	if args[0] == "serve" {
		w.serving = started
	}
}

// shows reports whether an output is what a page shows, in which … is any text. Members of JSON may have any order.
func (w *walk) shows(page, output string) bool {
	page = w.addresses.Replace(strings.TrimSpace(page))
	var want, have any
	if json.Unmarshal([]byte(page), &want) == nil && json.Unmarshal([]byte(output), &have) == nil {
		sorted, _ := json.Marshal(want) // what was read can be written
		page = string(sorted)
		sorted, _ = json.Marshal(have)
		output = string(sorted)
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(page), "…", ".*?")
	return regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(output)
}

// TestPagesWork runs every command of the README and of the tutorials, in order, and compares the output with what the page shows.
func TestPagesWork(t *testing.T) {
	for page, minCommands := range map[string]int{
		"../../README.md": 5, "../../docs/tutorial/first-tracker.md": 20, "../../docs/tutorial/move-a-product.md": 90,
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			w, all := newWalk(t), blocks(t, page)
			for i, one := range all {
				if one.language != "sh" {
					continue
				}
				output := strings.ReplaceAll(strings.TrimSpace(w.step(t, one.text)), "\r", "")
				if i+1 < len(all) && all[i+1].language == "text" && !w.shows(all[i+1].text, output) {
					t.Errorf("%s\nprints\n%s\nbut the page shows\n%s", one.text, output, all[i+1].text)
				}
			}
			if w.commands < minCommands {
				t.Errorf("only %d commands were run", w.commands)
			}
		})
	}
}

var (
	// asCommand matches a command of Portico in a block or in quotes of code.
	asCommand = regexp.MustCompile("(?m)(?:^|`| )(?:bin/)?portico ([a-z].*?)(?:`|  #|$)")
	// commandWords matches its name, which ends before the first flag or argument.
	commandWords = regexp.MustCompile(`^([a-z]+(?: [a-z]+)*)(?:[^a-z.]*? )`)
)

// help gives what the program says of a command, or an empty text where there is none of that name.
func help(t *testing.T, command string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), process.Portico(t), append(strings.Fields(command), "--help")...).CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^  portico `+command+`\b`).Match(output) {
		return ""
	}
	return string(output)
}

// TestCommandsOfPagesExist checks every command that a page shows, with its flags, against the help of the program, and every
// target of the Makefile.
func TestCommandsOfPagesExist(t *testing.T) {
	makefile := read(t, filepath.Join(top, "Makefile"))
	helps, checked := map[string]string{}, 0
	for _, page := range pages(t) {
		if page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/evidence/") || page == "docs/reference/cli.md" {
			continue // they speak of former runs, or are made of the help themselves
		}
		text := read(t, filepath.Join(top, page))
		for _, target := range found(text, "(?m)(?:^ *|`)make ([a-z-]+)(?:`|$| )") {
			if !strings.Contains(makefile, "\n"+target+":") {
				t.Errorf("%s speaks of make %s, which is no target", page, target)
			}
		}
		for _, line := range asCommand.FindAllStringSubmatch(text, -1) {
			name := commandWords.FindStringSubmatch(line[1] + " ")
			if name == nil { // portico is an argument of another program
				continue
			}
			command := name[1]
			if _, asked := helps[command]; !asked {
				helps[command] = help(t, command)
			}
			checked++
			if helps[command] == "" {
				t.Errorf("%s speaks of portico %s, which is no command", page, command)
			}
			for _, flag := range found(line[1], ` (--[a-z-]+)`) {
				if !strings.Contains(helps[command], flag+" ") && !strings.Contains(helps[command], flag+"\n") {
					t.Errorf("%s speaks of portico %s %s, which is no flag of it", page, command, flag)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d commands were checked", checked)
	}
}
