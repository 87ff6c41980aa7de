// A pipeline as a table: micro-operations down, cycles across. Made when its reader
// opens it, from the lists that ciphermill.webreport.pipelines packed.
"use strict";
(() => {
  const { make, unpack, facts } = window.page;
  const STAGES = JSON.parse(document.getElementById("stages").textContent);
  const [TEXT, PART, NUMBER, PORT, WRONG, SPANS, WAITS] = Array(7).keys();
  const STEP = 10;

  function build(p, place) {
    const name = (line) => `${line[WRONG] ? "> " : ""}${line[TEXT]}${line[PART] ? ` [${line[PART]}]` : ""}`;
    const width = (n) => `calc(${n} * var(--cycle))`;
    const axis = make("div", { class: "strip axis", style: `width:${width(p.cycles)}` });
    for (let cycle = -(p.first % STEP) + (p.first % STEP ? STEP : 0); cycle < p.cycles; cycle += STEP) {
      axis.append(make("span", { style: `left:${width(cycle)}` }, String(p.first + cycle)));
    }
    const fields = p.lines.map((line, i) => make("button", { type: "button", tabindex: i ? "-1" : "0", "data-line": String(i) }, name(line)));
    const rows = p.lines.map((line, i) => make("tr", { class: line[WRONG] ? "wrong" : null },
      make("th", { scope: "row" }, fields[i]), make("td", { class: "port" }, line[PORT] ?? ""),
      make("td", {}, make("div", { class: "strip", style: `width:${width(p.cycles)}` }, line[SPANS].map(([stage, start, cycles]) =>
        make("span", {
          class: `st st-${STAGES[stage][0]}`, style: `left:${width(start)};width:${width(cycles)}`,
          title: `${STAGES[stage][2]}: cycle ${p.first + start}${cycles > 1 ? ` to ${p.first + start + cycles - 1}` : ""}`,
        }, STAGES[stage][1]))))));
    const panel = make("div", { class: "panel", role: "status", tabindex: "0", "aria-label": "What was chosen" }, make("p", { class: "note" }, "No micro-operation chosen."));

    function show(i) {
      const line = p.lines[i];
      rows.forEach((row, at) => row.classList.toggle("chosen", at === i));
      const when = ([stage, start, cycles]) => [STAGES[stage][0], `cycle ${p.first + start}${cycles > 1 ? `, ${cycles} cycles` : ""}`];
      panel.replaceChildren(
        make("p", {}, make("code", {}, name(line))),
        line[WAITS].length ? make("ul", {}, line[WAITS].map((words) => make("li", {}, words))) : make("p", {}, "It waited for nothing."),
        facts([["instruction", line[NUMBER]], ["port", line[PORT]], ...line[SPANS].map(when)]),
      );
    }

    const table = make("table", { class: "pipe" },
      make("caption", {}, `${p.lines.length} micro-operations in ${p.cycles} cycles from cycle ${p.first}. Arrow keys move.`),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "micro-operation"), make("th", { scope: "col" }, "port"), make("th", { scope: "col" }, axis))),
      make("tbody", {}, rows));
    const at = (event) => { const row = event.target.closest("tbody tr"); return row ? rows.indexOf(row) : -1; };
    table.addEventListener("pointerover", (event) => { if (at(event) >= 0) show(at(event)); });
    table.addEventListener("focusin", (event) => {
      const i = at(event);
      if (i < 0) return;
      fields.forEach((field, other) => field.setAttribute("tabindex", other === i ? "0" : "-1"));
      show(i);
    });
    table.addEventListener("keydown", (event) => {
      const i = at(event);
      const to = { ArrowUp: i - 1, ArrowDown: i + 1, Home: 0, End: rows.length - 1 }[event.key];
      if (i >= 0 && fields[to]) { event.preventDefault(); fields[to].focus(); }
    });
    place.replaceChildren(make("div", { class: "split" },
      make("div", { class: "scroll tall", role: "region", "aria-label": "Pipeline", tabindex: "0" }, table), panel));
  }

  for (const details of document.querySelectorAll("details.pipeline")) {
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
