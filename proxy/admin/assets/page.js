// Writes times in the zone of the browser, and shows the buttons that copy a text and the boxes that select everything. Without it
// times are in UTC, and texts and rows are selected one by one.
"use strict";
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (isNaN(at) || at.getUTCFullYear() < 1970) continue;
  const part = (options) => new Intl.DateTimeFormat("sv-SE", options).format(at);
  const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(at).find((p) => p.type === "timeZoneName").value;
  time.title = time.textContent;
  time.textContent = part({ dateStyle: "short", timeStyle: "medium" }) + " " + zone;
}
for (const all of document.querySelectorAll("input[data-all]")) {
  all.closest("label").hidden = false;
  all.addEventListener("change", () => {
    for (const box of all.form.querySelectorAll("input[name=signature]")) box.checked = all.checked;
  });
}
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected, press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
}
