// The page works without this; with it: ticks are counted, keys move, and news is told.
"use strict";

const letters = document.getElementById("letters");
const rows = letters ? [...letters.querySelectorAll("tbody tr")] : [];
const ticks = letters ? [...letters.querySelectorAll('input[name="ids"]')] : [];

function countTicks() {
  const count = ticks.filter((tick) => tick.checked).length;
  for (const button of letters.querySelectorAll("[data-needs-ticks]")) button.disabled = count === 0;
  const words = document.getElementById("ticked");
  if (words) words.textContent = count ? `${count} ticked` : "";
}

function tickAll() {
  const wanted = ticks.some((tick) => !tick.checked);
  for (const tick of ticks) tick.checked = wanted;
  countTicks();
}

function move(step) {
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step;
  const link = rows[next]?.querySelector("a.open");
  if (link) link.focus();
}

function tickHere() {
  const tick = rows.find((row) => row.contains(document.activeElement))?.querySelector('input[name="ids"]');
  if (tick) {
    tick.checked = !tick.checked;
    countTicks();
  }
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  x: tickHere,
  a: tickAll,
  "/": () => document.querySelector('[data-key="/"]')?.focus(),
  "?": () => document.getElementById("keys")?.showModal(),
};

// A dialog that was closed keeps the focus until the next frame is drawn: its keys are the page's own again.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), select, textarea, dialog[open]")) return;
  const act = keys[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

function addTickForAll() {
  const place = letters.querySelector("th.tick");
  if (!place) return;
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "Tick all on this page");
  all.addEventListener("change", tickAll);
  place.replaceChildren(all);
}

if (letters) {
  addTickForAll();
  letters.addEventListener("change", countTicks);
  countTicks();
}

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

const units = [[60, 1, "s"], [3600, 60, "min"], [172800, 3600, "h"], [5184000, 86400, "d"]];

function ago(seconds) {
  for (const [limit, divisor, unit] of units) {
    if (seconds < limit) return `${Math.max(0, Math.floor(seconds / divisor))} ${unit} ago`;
  }
  return null;
}

function refreshTimes() {
  for (const time of document.querySelectorAll("time")) {
    const words = ago((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (words) time.textContent = words;
  }
}

// What died since this page was made is told, never slipped in under the reader's hand.
async function lookForNews() {
  if (document.hidden) return;
  const newest = Number(document.body.dataset.newest);
  const answer = await fetch("/ui/dead/newest", { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer || !answer.ok || answer.redirected) return;
  const found = await answer.json();
  if (found.newest > newest && !document.querySelector(".news")) {
    const news = document.createElement("div");
    news.className = "notice news";
    news.setAttribute("role", "status");
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Show them";
    news.append("More jobs have died since. ", link);
    document.getElementById("main").prepend(news);
  }
}

setInterval(refreshTimes, 5000);
if (document.body.dataset.newest) setInterval(lookForNews, 10000);
