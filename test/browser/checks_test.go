package browser

import (
	"strings"
	"time"
)

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
