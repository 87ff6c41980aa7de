// What moves on the page: evidence on click, filters, sorting, the theme, and
// the figures once they come into view. Without it the page reads the same.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const json = (id) => JSON.parse($(`#${id}`).textContent);
  let data;
  const loaded = () => (data ??= json("data"));

  // ------------------------------------------------------------------ small pieces

  /** An element with attributes and children; strings become text, never markup. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  const number = (value) => {
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return value.toLocaleString("en-US").replaceAll(",", "\u202f");
    return String(Number(value.toPrecision(5)));
  };
  const words = (name) => name.replaceAll("_", " ");

  /** A list of names and values; empty ones are left out. */
  function facts(pairs) {
    const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
    return make("dl", {}, shown.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value instanceof Node ? value : number(value))]));
  }
  const entries = (object, show = number) => facts(Object.entries(object ?? {}).map(([k, v]) => [words(k), show(v)]));

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // For the page's other scripts.
  window.page = { make, unpack, facts };

  // ------------------------------------------------------------------ evidence

  const dialog = $("#evidence"), body = $("#evidence-body"), title = $("#evidence-h");

  function commandLine(text) {
    const button = make("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Select and copy"; }
    });
    return make("div", {}, make("pre", { tabindex: "0" }, text), button);
  }

  /** All about one measurement. */
  function measurement(e) {
    const block = (name, content) => (content ? [make("h3", {}, name), content] : []);
    const some = (object) => (object && Object.keys(object).length ? object : null);
    const share = (v) => `${(100 * v).toFixed(1)} %`;
    const spent = Object.values(e.breakdown ?? {}).reduce((a, b) => a + b, 0);
    return [
      make("p", {}, e.why),
      ...(e.schedule ? [make("p", {}, `Schedule: ${e.schedule}.`)] : []),
      ...block("To get it again", commandLine(e.command)),
      ...block("Measured", entries(e.results)),
      ...block(`Bounds, cycles ${e.unit}`, entries(e.bounds)),
      ...block("Loops, software-pipelined", e.loops.length ? make("ul", {}, e.loops.map((l) => make("li", {},
        `II ${l.ii} (units ${l.res_mii}, recurrence ${l.rec_mii}), ${l.stages} ${l.stages === 1 ? "stage" : "stages"}${l.recorded ? ", a kept schedule" : ""}${l.proved_optimal ? ", proved the least" : ""}`))) : null),
      ...block("Events", some(e.events) && entries(e.events)),
      ...block("Metrics", some(e.metrics) && facts(Object.entries(e.metrics).map(([k, v]) => [words(k), /pki$/.test(k) || v > 1 ? number(v) : share(v)]))),
      ...block("Cycles spent on", some(e.breakdown) && entries(e.breakdown, (v) => `${number(v)} (${share(v / spent)})`)),
      ...block("Where it comes from", facts([
        ["verified", e.verified === null ? null : e.verified
          ? `output and memory equal the reference interpreter's${e.compared === null ? "" : ` after the first ${e.compared} bytes, the rest was not compared`}; ${e.vectors || "no"} official vectors`
          : `NO: ${e.failure ?? "see the command's --json"}`],
        ["constant time", e.timing],
        ["kind", e.kind],
        ["machine file", e.machine.file],
        ["its hash", e.machine.hash],
        ["module hash", e.module.hash],
        ["sources", (e.module.sources ?? [e.module.module]).filter(Boolean).join(", ")],
        ["compiler", e.module.compiler],
        ["flags", (e.module.flags ?? []).join(" ")],
        ["settings", [e.settings.blocks, ...e.settings.with.map((x) => `with ${x}`), ...e.settings.without.map((x) => `without ${x}`), ...e.settings.set].join(", ")],
        ["settings hash", e.settings.hash],
        ["ciphermill", e.version],
      ])),
    ];
  }

  /** A cell of a paper's table: the paper's figure, ours, and what ours is made of. */
  function cell(c) {
    const { evidence, cells } = loaded();
    const kinds = { published: "printed in the paper", quoted: "quoted by the paper from elsewhere", derived: "worked out here from the paper's figures" };
    const parts = [facts([
      ["paper", c.paper === null ? "no figure" : `${number(c.paper)} ${c.unit} (${kinds[c.paper_kind] ?? ""})`],
      ["stands in", c.paper_place],
      ["paper's title", c.citation],
      ["ours", c.ours === null ? `none: ${c.missing}` : `${number(c.ours)} ${c.unit}`],
      ["ours/paper", c.ratio === null ? null : c.ratio.toFixed(3)],
      ["taken from", c.measure ? `${c.measure}${c.times ? ` times ${c.times}` : ""}` : null],
    ])];
    if (c.formula) {
      const constants = Object.entries(c.formula.constants).map(([k, v]) => `${k} = ${v}`).join(", ");
      parts.push(make("h3", {}, `Formula: ${c.formula.name}${constants ? `, ${constants}` : ""}`));
      if (c.formula.quoted.length) parts.push(make("p", {}, `Quoted figures stand in for ours: ${c.formula.quoted.join(", ")}.`));
      parts.push(...c.formula.of.map((i) => make("button", { type: "button", class: "link", onclick: () => open(cells[i].label, cell(cells[i])) },
        `${cells[i].label}: ${number(cells[i].ours ?? cells[i].paper ?? "nothing")} ${cells[i].unit}`)));
    }
    if (c.evidence !== undefined) parts.push(...measurement(evidence[c.evidence]));
    else {
      if (c.provenance) parts.push(make("h3", {}, "Where it comes from"), make("pre", { tabindex: "0" }, JSON.stringify({ ...c.provenance, settings: c.settings }, null, 1)));
      parts.push(make("h3", {}, "To get it again"), commandLine(c.study));
    }
    return parts;
  }

  function open(heading, parts) {
    title.textContent = heading;
    body.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }

  document.addEventListener("click", (event) => {
    const at = event.target.closest("[data-evidence], [data-cell]");
    if (at?.dataset.cell !== undefined) { const c = loaded().cells[at.dataset.cell]; open(c.label, cell(c)); }
    else if (at) { const e = loaded().evidence[at.dataset.evidence]; open(e.title, measurement(e)); }
    else if (event.target === dialog) dialog.close();
  });
  $("#evidence-close").addEventListener("click", () => dialog.close());

  // ------------------------------------------------------------------ the start page

  // A page of schedules alone has none.
  if ($("#heat")) {
    const form = $("#filters"), heat = $("#heat"), rows = $$("tbody tr", heat);

    function filter() {
      const wanted = new FormData(form);
      const text = wanted.get("text").trim().toLowerCase();
      const machines = new Set(wanted.getAll("machine"));
      $$("[data-machine]", heat).forEach((c) => (c.hidden = !machines.has(c.dataset.machine)));
      let count = 0;
      for (const row of rows) {
        const cells = $$("td[data-value]", row).filter((c) => !c.hidden);
        const constant = cells.filter((c) => !wanted.get("constant") || "constant" in c.dataset);
        const limited = constant.filter((c) => !wanted.get("limit") || c.dataset.limit === wanted.get("limit"));
        cells.forEach((c) => {
          c.classList.toggle("out", !constant.includes(c));
          c.classList.toggle("faint", !limited.includes(c));
        });
        row.hidden = !(
          `${row.dataset.name} ${row.dataset.title}`.toLowerCase().includes(text) &&
          (!wanted.get("kind") || row.dataset.kind === wanted.get("kind")) &&
          (!wanted.get("default") || "default" in row.dataset) &&
          (!(wanted.get("constant") || wanted.get("limit")) || limited.length > 0)
        );
        count += !row.hidden;
      }
      $("#shown").textContent = `${count} of ${rows.length} programs`;
    }

    function sort(head, by) {
      const up = head.getAttribute("aria-sort") !== "ascending";
      $$("th[aria-sort]", heat).forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => (by === "name" ? row.dataset.name : Number($(`td[data-machine="${CSS.escape(by)}"]`, row)?.dataset.value ?? Infinity));
      const order = (a, b) => (by === "name" ? a.localeCompare(b) : a === b ? 0 : a - b);
      rows.sort((a, b) => (up ? 1 : -1) * order(value(a), value(b)));
      $("tbody", heat).append(...rows);
    }

    for (const head of $$("th[data-sort]", heat)) {
      head.replaceChildren(make("button", { type: "button", onclick: () => sort(head, head.dataset.sort) }, head.textContent));
    }
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  // ------------------------------------------------------------------ light and dark

  const themes = ["system", "light", "dark"];
  const button = $("#theme"), preferred = matchMedia("(prefers-color-scheme: dark)");
  let theme = "system";
  try { theme = localStorage.getItem("ciphermill-theme") ?? theme; } catch { /* A page from disk may have no storage. */ }
  const dark = () => theme === "dark" || (theme === "system" && preferred.matches);

  function apply() {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    redraw();
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("ciphermill-theme", theme); } catch { /* As above. */ }
    apply();
  });
  preferred.addEventListener("change", () => apply());

  // ------------------------------------------------------------------ figures

  let vega;
  const alive = new Set();

  /** Vega, unpacked the first time a figure needs it. */
  const program = () => (vega ??= unpack($("#vega").textContent).then((text) => { document.head.append(make("script", {}, text)); }));

  async function draw(figure) {
    const place = $(".drawing", figure);
    await program();
    const spec = JSON.parse($(".spec", figure).textContent);
    // The width that there is, less the room that labels take on the left.
    const width = Math.max(150, Math.min(560, figure.clientWidth - 200));
    for (const part of spec.vconcat ?? [spec]) part.width = width;
    const target = make("div");
    const look = json("themes")[dark() ? "dark" : "light"];
    const narrow = figure.clientWidth < 480 ? { legend: { ...look.legend, columns: 1 } } : {};
    await window.vegaEmbed(target, spec, { actions: { export: true, source: false, compiled: false, editor: false }, renderer: "svg", config: { ...look, ...narrow }, tooltip: { theme: dark() ? "dark" : "light" } });
    $("summary", target)?.setAttribute("aria-label", "Save the figure");
    place.classList.add("alive");
    // No longer one picture: it has a menu and points to ask.
    place.setAttribute("role", "group");
    place.replaceChildren(target);
    alive.add(figure);
  }

  const redraw = () => alive.forEach((figure) => draw(figure));
  if ("DecompressionStream" in window && "IntersectionObserver" in window) {
    const watch = new IntersectionObserver((seen) => seen.filter((s) => s.isIntersecting).forEach((s) => { watch.unobserve(s.target); draw(s.target); }));
    $$("figure").forEach((figure) => watch.observe(figure));
  }
  apply();
})();
