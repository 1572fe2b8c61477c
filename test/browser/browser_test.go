package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// screenshots names the folder that pictures go to; without it they go where the test ends.
const screenshots = "PORTICO_SCREENSHOTS"

// patience is how long a browser may take for one step.
const patience = 30 * time.Second

// look is what a tab looks like.
type look struct {
	width    int64
	dark     bool
	noScript bool
}

func (l look) String() string {
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	return fmt.Sprintf("%d-%s", l.width, scheme)
}

// tab is a page in a browser of its own. Everything that goes wrong in it fails the test.
type tab struct {
	t       testing.TB
	ctx     context.Context
	base    string
	mu      sync.Mutex
	strange []string
}

// openBrowser starts a Chromium with an empty profile, which ends with the test. base is the only host that it may ask.
func openBrowser(t testing.TB, base string, l look) *tab {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("these tests need a chromium in the PATH: ", err)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Env("HOME="+t.TempDir(), "LC_ALL=C.UTF-8"), chromedp.Flag("lang", "en-US"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	}
	for _, off := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "no-default-browser-check"} {
		options = append(options, chromedp.Flag(off, true))
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	o := &tab{t: t, base: base}
	o.ctx, _ = chromedp.NewContext(allocator, chromedp.WithListener(o.observe))
	t.Cleanup(o.close)
	if err := chromedp.Do(o.ctx, command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{})); err != nil {
		t.Fatal("start the browser: ", err)
	}
	o.wear(l)
	return o
}

// command makes a step of a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// close ends the browser and tells what went wrong in it.
func (o *tab) close() {
	if err := chromedp.Cancel(o.ctx); err != nil {
		o.t.Error("end the browser: ", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range o.strange {
		o.t.Error("the browser: ", line)
	}
}

// observe keeps errors of the browser, and requests to other hosts.
func (o *tab) observe(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		o.note("a script failed: " + e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			text, _ := json.Marshal(e.Args)
			o.note("the console: " + string(text))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			o.note("the console: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, o.base+"/") && !strings.HasPrefix(url, "data:") {
			o.note("a request to another host: " + url)
		}
	}
}

func (o *tab) note(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.strange = append(o.strange, line)
}

// do runs steps, all within a while.
func (o *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		o.t.Fatalf("%s: %v", what, err)
	}
}

// wear changes width and colours.
func (o *tab) wear(l look) {
	o.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	o.do("change the look",
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: 900, DeviceScaleFactor: 1}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript}))
}

// visit opens a path and waits for the page.
func (o *tab) visit(path string) {
	o.t.Helper()
	o.do("visit "+path, chromedp.Navigate(o.base+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// click follows a link or presses a button, and waits for what must then be there.
func (o *tab) click(selector, then string) {
	o.t.Helper()
	o.do("click "+selector, chromedp.Click(chromedp.CSS(selector)), chromedp.WaitVisible(chromedp.CSS(then)))
}

// fill types into a field.
func (o *tab) fill(selector, text string) {
	o.t.Helper()
	o.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// text gives what an element says. It reads in one step, since a page that updates itself replaces its elements.
func (o *tab) text(selector string) string {
	o.t.Helper()
	o.do("see "+selector, chromedp.WaitReady(chromedp.CSS(selector)))
	return strings.TrimSpace(ask[string](o, "document.querySelector("+strconv.Quote(selector)+").innerText"))
}

// ask evaluates an expression in the page.
func ask[T any](o *tab, expression string) T {
	o.t.Helper()
	return get(o, "ask "+expression[:min(len(expression), 60)], chromedp.Evaluate[T](expression))
}

// get takes a step that gives something, within a while.
func get[T any](o *tab, what string, step chromedp.Action[T]) T {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, step)
	if err != nil {
		o.t.Fatalf("%s: %v", what, err)
	}
	return value
}

// press presses a key on whatever has the focus.
func (o *tab) press(key string) {
	o.t.Helper()
	o.do("press a key", chromedp.KeyEvent(key))
}

// tabTo presses the tab key until an element has the focus.
func (o *tab) tabTo(id string) {
	o.t.Helper()
	here := ""
	for range 100 {
		o.press(kb.Tab)
		here = ask[string](o, `document.activeElement.id || document.activeElement.tagName + " " + document.activeElement.textContent.trim().slice(0, 40)`)
		if here == id {
			return
		}
	}
	o.t.Fatalf("the tab key does not reach %s, but %q", id, here)
}

// picture takes a screenshot of the whole page.
func (o *tab) picture(name string) {
	o.t.Helper()
	picture := get(o, "take a picture", chromedp.FullScreenshot(100))
	dir := os.Getenv(screenshots)
	if dir == "" {
		dir = o.t.TempDir()
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// check looks at the page that is open as a reader with other needs would.
func (o *tab) check(page string) {
	o.t.Helper()
	// What a click leads to may be there before its stylesheet.
	for end := time.Now().Add(time.Minute); ask[string](o, `document.readyState`) != "complete" && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	wide := ask[[]int](o, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`)
	if wide[0] > wide[1] {
		o.t.Errorf("%s: the page is %d wide in a window of %d", page, wide[0], wide[1])
	}
	if wide := ask[[]string](o, `[...document.querySelectorAll(".table")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText.slice(0, 40))`); len(wide) > 0 {
		o.t.Errorf("%s: tables that scroll: %q", page, wide)
	}
	for name, script := range map[string]string{"contrast": contrastScript, "structure": structureScript, "targets": targetsScript} {
		if wrong := ask[[]string](o, script); len(wrong) > 0 {
			o.t.Errorf("%s: %s:\n%s", page, name, strings.Join(wrong, "\n"))
		}
	}
}

// contrastScript finds text whose colour is too close to what is behind it: WCAG 2.2, 1.4.3 asks for 4.5.
const contrastScript = `(() => {
	const parts = (color) => color.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
	const behind = (element) => {
		for (; element; element = element.parentElement) {
			const color = parts(getComputedStyle(element).backgroundColor);
			if (color.length < 4 || color[3] === 1) return color;
		}
		return [255, 255, 255];
	};
	const wrong = new Set();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; node = walker.nextNode();) {
		const element = node.parentElement;
		if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
		const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) wrong.add(ratio.toFixed(2) + " " + element.tagName + "." + element.className + " " + node.data.trim().slice(0, 30));
	}
	return [...wrong];
})()`

// structureScript finds headings that leave out a level, fields without a label, ids that are there twice, and images
// without a name.
const structureScript = `(() => {
	const wrong = [];
	let level = 0;
	for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
		const next = Number(h.tagName[1]);
		if (next > level + 1) wrong.push(h.textContent + " leaves out a level");
		level = next;
	}
	if (document.querySelectorAll("h1").length !== 1) wrong.push("there is not exactly one h1");
	for (const field of document.querySelectorAll("input, select, textarea"))
		if (field.type !== "hidden" && !field.labels.length) wrong.push(field.name + " has no label");
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(id + " is there twice");
	for (const image of document.querySelectorAll("svg:not([aria-hidden]), img"))
		if (!image.getAttribute("aria-label") && !image.alt) wrong.push("an image has no name");
	for (const box of document.querySelectorAll("th")) if (!box.getAttribute("scope")) wrong.push("the cell " + box.textContent + " heads nothing");
	return [...new Set(wrong)];
})()`

// targetsScript finds what is too small for a finger: WCAG 2.2, 2.5.8 asks for 24 pixels, except of links within a text.
const targetsScript = `(() => {
	const wrong = [];
	for (const target of document.querySelectorAll("a, button, input, select, textarea, summary")) {
		const box = target.getBoundingClientRect();
		const inline = target.tagName === "A" && getComputedStyle(target).display === "inline";
		if (target.checkVisibility() && !inline && (box.width < 24 || box.height < 24) && !target.matches(".skip"))
			wrong.push(target.outerHTML.slice(0, 60) + " is " + box.width.toFixed() + " by " + box.height.toFixed());
	}
	return wrong;
})()`
