// A schedule as a table: cycles down, units across. Made when its reader opens
// it, from the lists that ciphermill.webreport.kernels packed.
"use strict";
(() => {
  const { make, unpack, facts } = window.page;
  const CLASSES = JSON.parse(document.getElementById("classes").textContent);
  // The fields of a line, in the order in which they were packed.
  const [CYCLE, COLUMN, TEXT, CLASS, ROLE, WAITS, PRODUCER, REGISTER, SLACK, STALLED, PATHS, NEEDS] = Array(12).keys();

  /** The name of an operation: what stands in its field. A predicate comes before it. */
  const short = (text) => text.split(" ").find((word) => !word.startsWith("[")) ?? text;

  function waiting(s, line) {
    const stood = line[STALLED] ? `${line[STALLED]} cycles stalled: ` : "";
    switch (line[WAITS]) {
      case "operand": return `${stood}${line[REGISTER]} from cycle ${s.lines[line[PRODUCER]][CYCLE]} (${short(s.lines[line[PRODUCER]][TEXT])})`;
      case "unit": return stood ? `${stood}a unit` : `a unit; its operands were there for ${line[SLACK]} cycles`;
      case "order": return "the instruction before it";
      default: return line[SLACK] === null ? "nothing in this code" : `nothing; its operands were there for ${line[SLACK]} cycles`;
    }
  }

  function build(s, place) {
    const users = s.lines.map(() => []);
    s.lines.forEach((line, to) => line[NEEDS].forEach((need) => users[need[0]].push([to, ...need.slice(1)])));
    const fields = [];
    const rows = Array.from({ length: s.cycles }, (_, cycle) => {
      const row = make("tr", {}, make("th", { scope: "row" }, String(cycle)));
      s.columns.forEach(() => row.append(make("td")));
      return row;
    });
    s.lines.forEach((line, i) => {
      const name = short(line[TEXT]);
      const field = make("button", {
        type: "button", class: `op op-${CLASSES[line[CLASS]] ?? "move"}`, tabindex: "-1", "data-line": String(i),
        title: `${line[TEXT]}\nwaits for ${waiting(s, line)}`,
      }, name, line[WAITS] === "operand" ? make("span", { class: "waits", "aria-hidden": "true" }, "◂") : null);
      fields.push(field);
      // Two of one unit in one cycle can only be on a unit that there is more than once.
      if (line[COLUMN] >= 0) rows[line[CYCLE]].children[line[COLUMN] + 1].append(field);
    });
    rows.find((row) => row.querySelector("[data-line]"))?.querySelector("[data-line]").setAttribute("tabindex", "0");
    const panel = make("div", { class: "panel", role: "status", tabindex: "0", "aria-label": "What was chosen" }, make("p", { class: "note" }, "No instruction chosen."));

    function show(i) {
      const line = s.lines[i];
      const link = ([other, register, latency, slack, passes], from) => {
        const when = passes ? `, ${passes === 1 ? "the pass before" : `${passes} passes before`}` : "";
        return make("li", {}, make("button", { type: "button", class: "link", onclick: () => fields[other].focus() },
          `${register} ${from ? "of" : "to"} cycle ${s.lines[other][CYCLE]}: ${s.lines[other][TEXT]}`),
        ` (${latency} to make, ${slack} spare${when})`);
      };
      const list = (name, items, from) => items.length ? [make("h4", {}, name), make("ul", {}, items.map((item) => link(item, from)))] : [];
      fields.forEach((field) => field.classList.remove("chosen", "source", "use"));
      fields[i].classList.add("chosen");
      line[NEEDS].forEach(([other]) => fields[other].classList.add("source"));
      users[i].forEach(([other]) => fields[other].classList.add("use"));
      panel.replaceChildren(
        make("p", {}, make("code", {}, line[TEXT])),
        facts([
          ["cycle", line[CYCLE]], ["unit", s.columns[line[COLUMN]] || null], ["paths", line[PATHS].join(", ")],
          ["kind", `${CLASSES[line[CLASS]] ?? ""}${line[ROLE] === "lookup" ? ", serves a table lookup" : line[ROLE] === "overhead" ? ", a move or a spill" : ""}`],
          ["waits for", waiting(s, line)],
        ]),
        ...list("Needs", line[NEEDS], true), ...list("Used by", users[i], false),
      );
    }

    const choose = (field) => {
      fields.forEach((f) => f.setAttribute("tabindex", f === field ? "0" : "-1"));
      show(Number(field.dataset.line));
    };
    const table = make("table", { class: "grid" },
      make("caption", {}, `${s.lines.length} instructions in ${s.cycles} cycles${s.looped ? " a pass" : ""}; ◂ marks those that waited for an operand. Arrow keys move.`),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "cycle"), s.columns.map((c) => make("th", { scope: "col" }, c || make("span", { class: "unseen" }, "any unit"))))),
      make("tbody", {}, rows));
    table.addEventListener("pointerover", (event) => { const f = event.target.closest("[data-line]"); if (f) show(Number(f.dataset.line)); });
    table.addEventListener("focusin", (event) => { const f = event.target.closest("[data-line]"); if (f) choose(f); });
    table.addEventListener("keydown", (event) => {
      const from = event.target.closest("[data-line]");
      const to = from && neighbour(rows, from, event.key);
      if (to) { event.preventDefault(); to.focus(); }
    });
    const all = make("details", { class: "listing" }, make("summary", {}, "As a list"),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Instructions in order" }, make("table", {},
        make("thead", {}, make("tr", {}, ["cycle", "unit", "instruction", "waits for"].map((h) => make("th", { scope: "col" }, h)))),
        make("tbody", {}, s.lines.map((line) => make("tr", {}, make("th", { scope: "row" }, String(line[CYCLE])), make("td", {}, s.columns[line[COLUMN]] ?? ""),
          make("td", { class: "text" }, make("code", {}, line[TEXT])), make("td", { class: "text" }, waiting(s, line))))))));
    place.replaceChildren(make("div", { class: "split" },
      make("div", { class: "scroll tall", role: "region", "aria-label": "Schedule", tabindex: "0" }, table), panel), all);
  }

  /** The field that an arrow key leads to: the next one in the row, or the nearest row's nearest. */
  function neighbour(rows, from, key) {
    const cell = from.closest("td"), row = cell.parentElement;
    const inside = (r) => [...r.querySelectorAll("[data-line]")];
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[key];
    if (key === "Home" || key === "End") return inside(row).at(key === "Home" ? 0 : -1);
    if (!step) return null;
    if (key === "ArrowLeft" || key === "ArrowRight") return inside(row)[inside(row).indexOf(from) + step] ?? null;
    for (let i = rows.indexOf(row) + step; i >= 0 && i < rows.length; i += step) {
      const near = inside(rows[i]).sort((a, b) => Math.abs(a.closest("td").cellIndex - cell.cellIndex) - Math.abs(b.closest("td").cellIndex - cell.cellIndex));
      if (near.length) return near[0];
    }
    return null;
  }

  for (const details of document.querySelectorAll("details.stretch")) {
    const show = async () => {
      const place = details.querySelector(".schedule");
      if (!details.open || place.dataset.built) return;
      place.dataset.built = "yes";
      build(JSON.parse(await unpack(details.querySelector(".packed").textContent)), place);
    };
    details.addEventListener("toggle", show);
    // One that the page opens may have been opened before anybody listened.
    show();
  }
})();
