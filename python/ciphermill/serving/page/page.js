// The page of `ciphermill serve`: sends the text, and shows the lines of the answer as they come.
// Everything that comes back is put in as text, never as HTML.
"use strict";
(() => {
  const known = JSON.parse(document.getElementById("given").textContent);
  const at = (id) => document.getElementById(id);
  const make = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text ?? "" }, properties);
  const [source, numbers, state, message] = ["source", "numbers", "state", "message"].map(at);
  const KEPT = "ciphermill-source";
  let running = null;

  // The text: numbers of its lines, and those that a message names.

  function number(bad = new Set()) {
    const many = source.value.split("\n").length;
    numbers.replaceChildren(...Array.from({ length: many }, (_, i) => {
      const line = make("span", `${i + 1}`);
      if (bad.has(i + 1)) line.className = "bad";
      return line;
    }).flatMap((line) => [line, "\n"]));
    numbers.scrollTop = source.scrollTop;
  }

  function put(text) {
    source.value = text;
    number();
  }

  /** Move to a line of the text, and choose it. */
  function go(line) {
    const lines = source.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    source.focus();
    source.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    source.scrollTop = (line - 5) * parseFloat(getComputedStyle(source).lineHeight);
  }

  /** A message in an element, with the places that it names to be chosen; their lines. */
  function place(text, element) {
    const bad = new Set();
    element.replaceChildren(...text.split(/(cipher\.c:\d+(?::\d+)?)/).map((part, i) => {
      if (i % 2 === 0) return part;
      const line = Number(part.split(":")[1]);
      bad.add(line);
      return make("button", part, { type: "button", onclick: () => go(line) });
    }));
    element.hidden = false;
    return bad;
  }

  function complain(text) {
    number(place(text, message));
  }

  // What is asked.

  function asked() {
    const machines = [...document.querySelectorAll("#machines input:checked")].map((box) => box.value);
    const bits = at("key_bits").value.trim();
    return {
      source: source.value,
      machines,
      extensions: at("extensions").value.split(/[\s,]+/).filter(Boolean),
      direction: at("direction").value.trim() || null,
      blocks: at("blocks").value || null,
      key_bits: bits === "" ? null : Number(bits),
      optimise: at("optimise").value,
    };
  }

  // What is told.

  function clear() {
    message.hidden = true;
    at("compared").hidden = true;
    at("heads").replaceChildren();
    at("rows").replaceChildren();
    at("machines-told").replaceChildren();
    number();
  }

  function row(told) {
    if (!at("heads").children.length) {
      at("heads").append(...["machine", ...Object.keys(told.row)].map((name) => make("th", name, { scope: "col" })));
    }
    const line = make("tr", "", { className: told.verified ? "" : "unverified" });
    line.append(make("th", told.machine, { scope: "row" }), ...Object.values(told.row).map((value) => make("td", value)));
    at("rows").append(line);
    at("compared").hidden = false;
  }

  function machine(told) {
    const part = make("section", "", { className: "told" });
    part.dataset.machine = told.machine;
    part.append(make("h3", told.machine));
    if (told.refused) {
      const text = make("pre", "", { className: "wrong" });
      place(told.refused, text);
      part.append(text);
    } else {
      row(told);
      const explained = make("details", "", { open: at("rows").children.length === 1 });
      explained.append(make("summary", "Bounds and schedule"), make("pre", told.explanation, { tabIndex: 0 }));
      part.append(make("p", told.sentence), make("pre", told.details, { tabIndex: 0 }), explained);
    }
    at("machines-told").append(part);
  }

  function told(answer, many) {
    if (answer.machine) machine(answer);
    else if (answer.refused) complain(answer.refused);
    else if (answer.error) complain(answer.error);
    const done = at("machines-told").children.length;
    if (answer.waiting) state.textContent = `Waiting: ${answer.waiting} before this run.`;
    else if (answer.refused) state.textContent = "It does not compile.";
    else if (answer.error) state.textContent = "The run did not end.";
    else if (answer.done) state.textContent = message.hidden ? "Done." : state.textContent;
    else state.textContent = `${done} of ${many} machines measured ...`;
  }

  /** The lines of an answer as they come. */
  async function* lines(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const whole = (rest + value).split("\n");
      rest = whole.pop();
      yield* whole;
    }
  }

  async function run() {
    running?.abort();
    const mine = running = new AbortController();
    const wanted = asked();
    clear();
    if (!wanted.machines.length) {
      complain("no machine is chosen; choose one");
      return;
    }
    state.textContent = "Compiling ...";
    at("stop").hidden = false;
    try {
      const answer = await fetch("/run", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Ciphermill-Token": known.token },
        body: JSON.stringify(wanted),
        signal: mine.signal,
      });
      for await (const line of lines(answer.body)) {
        if (mine === running) told(JSON.parse(line), wanted.machines.length);
      }
    } catch (error) {
      if (mine === running) {
        state.textContent = mine.signal.aborted ? "Stopped." : "The run did not end.";
        if (!mine.signal.aborted) complain("the server does not answer; is it still running?");
      }
    }
    if (mine === running) at("stop").hidden = true;
  }

  // The start.

  at("version").textContent = known.version;
  at("unconfined").hidden = known.confined;
  for (const { name, title, chosen } of known.machines) {
    const label = make("label", "", { title });
    label.append(make("input", "", { type: "checkbox", value: name, checked: chosen }), ` ${name}`);
    at("machines").append(label);
  }
  at("known").append(...known.extensions.map((name) => make("option", "", { value: name })));
  at("directions").append(...known.directions.map((name) => make("option", "", { value: name })));
  at("example").append(...Object.keys(known.examples).map((name) => make("option", name, { value: name })));
  at("example").addEventListener("change", () => put(known.examples[at("example").value]));
  put(sessionStorage.getItem(KEPT) ?? Object.values(known.examples)[0]);
  source.addEventListener("input", () => {
    sessionStorage.setItem(KEPT, source.value);
    number();
  });
  source.addEventListener("scroll", () => { numbers.scrollTop = source.scrollTop; });
  at("run").addEventListener("click", run);
  at("stop").addEventListener("click", () => running?.abort());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
})();
