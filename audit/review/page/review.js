// One item at a time; every verdict is sent at once, and the page moves on only when it is on the disk.
"use strict";
const WORDS = {
  ar: {
    title: "مراجعة الأسئلة", keep: "صالح", discard: "غير صالح", unsure: "لا أدري", note: "ملاحظة (اختيارية)",
    previous: "السابق", next: "التالي", saved: "حُفظ", failed: "لم يُحفظ! أعد المحاولة، أو شغّل البرنامج من جديد.",
    image: "صورة السؤال", missing: "صورة هذا السؤال غير متاحة.",
    done: "راجعت جميع الأسئلة. شكرا لك!", why: "سبب العرض:", of: "من",
    help: "المفاتيح: K صالح، D غير صالح، U لا أدري، N ملاحظة، Esc خروج من الملاحظة، الأسهم للتنقل.",
  },
  en: {
    title: "Review of items", keep: "Keep", discard: "Discard", unsure: "Not sure", note: "Note (optional)",
    previous: "Previous", next: "Next", saved: "Saved", failed: "Not saved! Try again, or start the program anew.",
    image: "The item's image", missing: "The image of this item is not here, or cannot be shown.",
    done: "All items are reviewed. Thank you!", why: "Shown because of:", of: "of",
    help: "Keys: K keep, D discard, U not sure, N note, Esc leaves the note, arrows move.",
  },
};
const at = (id) => document.getElementById(id);
const buttons = [...document.querySelectorAll("[data-verdict]")];
let words, state, item, busy = false;

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

function say(text, failed) {
  at("status").textContent = text;
  at("status").classList.toggle("failed", Boolean(failed));
}

function option(text, place) {
  const line = document.createElement("li");
  const number = document.createElement("span");
  const words = document.createElement("span");
  number.className = "number";
  number.textContent = `${place + 1}.`;
  words.dir = "auto";
  words.textContent = text;
  line.append(number, words);
  if (item.gold.includes(place)) line.className = "gold";
  return line;
}

function count() {
  const done = state.verdicts.filter(Boolean).length;
  at("progress").textContent = `${done} ${words.of} ${state.verdicts.length}`;
  at("bar").max = state.verdicts.length;
  at("bar").value = done;
  if (done === state.verdicts.length) say(words.done);
}

async function show(place) {
  item = await ask(`items/${place}`);
  for (const name of ["context", "question"]) at(name).textContent = item[name];
  at("context").hidden = !item.context;
  at("subset").textContent = `${item.subset} (${place + 1})`;
  at("options").replaceChildren(...item.options.map(option));
  at("why").querySelector("bdi").textContent = item.reasons.join(", ");
  at("why").hidden = !item.reasons.length;
  at("image").hidden = !item.image;
  at("missing").hidden = !item.image_missing;
  if (item.image) at("image").src = `items/${place}/image`;
  else at("image").removeAttribute("src");
  at("note").value = item.note;
  for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.verdict === item.verdict));
  document.body.dataset.place = String(place);
  count();
}

async function decide(verdict) {
  if (busy || !item) return;
  busy = true;
  try {
    const body = JSON.stringify({ item: item.item, verdict, note: at("note").value });
    await ask("verdicts", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    state.verdicts[item.place] = verdict;
    say(words.saved);
    const open = state.verdicts.map((one, place) => (one ? -1 : place)).filter((place) => place >= 0);
    const next = open.find((place) => place > item.place) ?? open[0];
    await show(next ?? item.place);
  } catch (error) {
    say(words.failed, true);
  } finally {
    busy = false;
  }
}

async function move(step) {
  const place = item.place + step;
  if (busy || place < 0 || place >= state.verdicts.length) return;
  try {
    say("");
    await show(place);
  } catch (error) {
    say(words.failed, true);
  }
}

// By its Latin letter, else by its place: on an Arabic keyboard the key K writes another letter.
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !item) return;
  if (event.target === at("note")) {
    if (event.code === "Escape") at("note").blur();
    return;
  }
  const forward = document.documentElement.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
  const back = document.documentElement.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
  const does = {
    KeyK: () => decide("keep"), KeyD: () => decide("discard"), KeyU: () => decide("unsure"),
    KeyN: () => at("note").focus(), [forward]: () => move(1), [back]: () => move(-1),
  }[/^[a-z]$/i.test(event.key) ? `Key${event.key.toUpperCase()}` : event.code];
  if (!does || event.repeat) return;
  event.preventDefault();
  does();
}

async function start() {
  state = await ask("state");
  words = WORDS[state.language];
  document.documentElement.lang = state.language;
  document.documentElement.dir = state.direction;
  document.title = words.title;
  at("annotator").textContent = state.annotator;
  at("help").textContent = words.help;
  at("image").alt = words.image;
  at("missing").textContent = words.missing;
  at("image").addEventListener("error", () => { at("missing").hidden = false; });
  at("why").querySelector("span").textContent = words.why;
  at("note-label").textContent = words.note;
  for (const id of ["previous", "next"]) at(id).textContent = words[id];
  for (const one of buttons) {
    one.querySelector("span").textContent = words[one.dataset.verdict];
    one.addEventListener("click", () => decide(one.dataset.verdict));
  }
  at("previous").addEventListener("click", () => move(-1));
  at("next").addEventListener("click", () => move(1));
  document.addEventListener("keydown", pressed);
  const open = state.verdicts.indexOf("");
  await show(open < 0 ? 0 : open);
  document.documentElement.dataset.ready = "yes";
}

start();
