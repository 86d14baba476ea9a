// Draws figures and lists programs, for the report and the live page. Whatever a candidate wrote is
// set as text, never as markup.
"use strict";
const brood = (() => {
  const problems = document.getElementById("problems");

  const report = (what, error) => {
    problems.textContent = `${what}: ${error && error.message ? error.message : error}`;
    console.error(what, error);
  };

  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  const number = (value) => {
    if (value === null || value === undefined) return "-";
    return typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value);
  };

  const facts = (values) =>
    Object.entries(values).map(([key, value]) => {
      const fact = element("div");
      const told = element("dd");
      told.append(value);
      fact.append(element("dt", key), told);
      return fact;
    });

  // One figure: an SVG with its words as its name; a click on a mark shows the mark's program.
  const draw = async (place, { spec, data }, { name, words, viewer }) => {
    const options = {
      mode: "vega-lite",
      renderer: "svg",
      ast: true, // expressions are walked, so the page needs no eval
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: name,
    };
    const drawn = await vegaEmbed(place, { ...spec, datasets: data }, options);
    const svg = place.querySelector("svg");
    svg.removeAttribute("aria-hidden");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", words);
    if (viewer) {
      drawn.view.addEventListener("click", (event, item) => {
        if (item && item.datum && item.datum.id !== undefined) viewer.show(item.datum.id);
      });
    }
    return drawn;
  };

  // Lists programs and shows their texts. Its source has list({order, outcome, words, page}), which
  // returns rows, the number of the first one, how many there are in all, and the outcomes to
  // choose from; and program(id), which returns a row with message and text; null if there is none.
  class Viewer {
    constructor(section, source) {
      this.find = (selector) => section.querySelector(selector);
      this.source = source;
      this.page = 0;
      const form = this.find(".choose");
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("input", () => this.turn(-this.page));
      this.find(".before").addEventListener("click", () => this.turn(-1));
      this.find(".after").addEventListener("click", () => this.turn(1));
    }

    turn(by) {
      this.page += by;
      return this.list().catch((error) => report("The programs can't be listed", error));
    }

    async list() {
      const value = (name) => this.find(`[name=${name}]`).value;
      const [order, outcome, words] = ["order", "outcome", "words"].map(value);
      const asked = (this.asked = { order, outcome, words: words.toLowerCase(), page: this.page });
      const { rows, first, total, outcomes } = await this.source.list(asked);
      if (asked !== this.asked) return; // something else was chosen meanwhile
      this.offer(outcomes);
      const focused = document.activeElement.dataset.key;
      this.find(".list").replaceChildren(...rows.map((each) => this.row(each)));
      if (focused) this.find(`[data-key="${CSS.escape(focused)}"]`)?.focus();
      this.find(".before").disabled = first === 0;
      this.find(".after").disabled = first + rows.length >= total;
      const count = rows.length
        ? `${first + 1} to ${first + rows.length} of ${total} programs`
        : "No program fits.";
      if (this.find(".count").textContent !== count) this.find(".count").textContent = count;
    }

    offer(outcomes) {
      const select = this.find("[name=outcome]");
      const known = [...select.options].map((each) => each.value);
      for (const each of outcomes.filter((each) => !known.includes(each)))
        select.append(element("option", each));
    }

    row({ id, score, gain, operator, island, seconds, parent, best, outcome }) {
      const row = element("tr");
      const name = element("td");
      name.append(this.button(id, `program ${id}`));
      if (best) name.append(" (new best)");
      const parents = element("td");
      if (parent) parents.append(this.button(parent, `parent of ${id}`));
      const numbers = [score, gain].map((each) => element("td", number(each), "number"));
      const words = [outcome, operator].map((each) => element("td", each));
      const last = [island, seconds].map((each) => element("td", number(each), "number"));
      row.append(name, ...numbers, ...words, ...last, parents);
      return row;
    }

    button(id, key) {
      const made = element("button", id);
      made.type = "button";
      if (key) made.dataset.key = key;
      made.addEventListener("click", () => this.show(id));
      return made;
    }

    async show(id) {
      const panel = this.find(".program");
      const asked = (this.shown = this.source.program(id));
      const program = await asked;
      if (!program || asked !== this.shown) return;
      const title = panel.querySelector("h4");
      title.textContent = `Program ${id}`;
      const told = {
        outcome: program.outcome,
        score: number(program.score),
        gain: number(program.gain),
        operator: program.operator || "-",
        island: number(program.island),
        "wall seconds": number(program.seconds),
      };
      if (program.parent) told.parent = this.button(program.parent);
      panel.querySelector(".facts").replaceChildren(...facts(told));
      panel.querySelector(".message").textContent = program.message;
      panel.querySelector("code").textContent = program.text;
      panel.hidden = false;
      title.focus();
      panel.scrollIntoView({ block: "nearest" });
    }
  }

  addEventListener("error", (event) => report("The page has an error", event.message));
  return { report, element, number, facts, draw, Viewer };
})();
