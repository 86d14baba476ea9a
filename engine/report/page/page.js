// Draws the figures and shows programs. Whatever a candidate wrote is set as text, never as markup.
"use strict";
(() => {
  const ROWS = 20; // programs of a page of the list
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const problems = document.getElementById("problems");
  const viewers = new Map();

  const report = (what, error) => {
    problems.textContent = `${what}: ${error && error.message ? error.message : error}`;
    console.error(what, error);
  };

  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
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

  // One figure: an SVG with its words as its name; a click on a mark shows the mark's program.
  const draw = async (place) => {
    const { spec, data } = figures[place.dataset.figure];
    const options = {
      mode: "vega-lite",
      renderer: "svg",
      ast: true, // expressions are walked, so the page needs no eval
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: place.dataset.figure,
    };
    const { view } = await vegaEmbed(place, { ...spec, datasets: data }, options);
    const svg = place.querySelector("svg");
    svg.removeAttribute("aria-hidden");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", place.dataset.alt);
    const viewer = viewers.get(place.dataset.run);
    if (viewer) {
      view.addEventListener("click", (event, item) => {
        if (item && item.datum && item.datum.id !== undefined) viewer.show(item.datum.id);
      });
    }
  };

  class Viewer {
    constructor(section) {
      this.find = (selector) => section.querySelector(selector);
      this.packs = [...section.querySelectorAll(".pack")].map((each) => each.textContent);
      this.unpacked = new Map();
      this.page = 0;
    }

    async open() {
      this.index = await unpack(this.find(".index").textContent);
      this.places = new Map(this.index.id.map((id, place) => [id, place]));
      const inPack = new Map();
      this.within = this.index.pack.map((pack) => {
        const place = inPack.get(pack) || 0;
        inPack.set(pack, place + 1);
        return place;
      });
      const outcomes = this.find("[name=outcome]");
      for (const each of [...new Set(this.index.id.map((_, place) => this.outcome(place)))].sort())
        outcomes.append(element("option", each));
      const form = this.find(".choose");
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("input", () => this.choose());
      this.find(".before").addEventListener("click", () => this.turn(-1));
      this.find(".after").addEventListener("click", () => this.turn(1));
      this.choose();
    }

    outcome(place) {
      const { outcome, reason } = this.index;
      return reason[place] ? `${outcome[place]}: ${reason[place]}` : outcome[place];
    }

    choose() {
      const order = this.find("[name=order]").value;
      const outcome = this.find("[name=outcome]").value;
      const words = this.find("[name=words]").value.toLowerCase();
      const { id, operator, message, rank } = this.index;
      const fits = (place) =>
        (!outcome || this.outcome(place) === outcome) &&
        (!words || `${id[place]} ${operator[place]} ${message[place]}`.toLowerCase().includes(words));
      this.chosen = id.map((_, place) => place).filter(fits);
      if (order === "newest") this.chosen.reverse();
      if (order === "best") this.chosen.sort((a, b) => rank[a] - rank[b]);
      this.page = 0;
      this.list();
    }

    turn(by) {
      this.page += by;
      this.list();
    }

    list() {
      const first = this.page * ROWS;
      const rows = this.chosen.slice(first, first + ROWS).map((place) => this.row(place));
      this.find(".list").replaceChildren(...rows);
      this.find(".before").disabled = this.page === 0;
      this.find(".after").disabled = first + ROWS >= this.chosen.length;
      this.find(".count").textContent = rows.length
        ? `${first + 1} to ${first + rows.length} of ${this.chosen.length} programs`
        : "No program fits.";
    }

    row(place) {
      const { id, score, gain, operator, island, seconds, parent, best } = this.index;
      const row = element("tr");
      const name = element("td");
      name.append(this.button(id[place]));
      if (best[place]) name.append(" (new best)");
      const parents = element("td");
      if (parent[place]) parents.append(this.button(parent[place]));
      const numbers = [score, gain].map((each) => element("td", number(each[place]), "number"));
      const words = [this.outcome(place), operator[place]].map((each) => element("td", each));
      const last = [island, seconds].map((each) => element("td", number(each[place]), "number"));
      row.append(name, ...numbers, ...words, ...last, parents);
      return row;
    }

    button(id) {
      const made = element("button", id);
      made.type = "button";
      made.addEventListener("click", () => this.show(id));
      return made;
    }

    async show(id) {
      const place = this.places.get(id);
      if (place === undefined) return;
      const { score, gain, seconds, island, operator, parent, message, pack } = this.index;
      const panel = this.find(".program");
      const title = panel.querySelector("h4");
      title.textContent = `Program ${id}`;
      const facts = Object.entries({
        outcome: this.outcome(place),
        score: number(score[place]),
        gain: number(gain[place]),
        operator: operator[place] || "-",
        island: number(island[place]),
        "wall seconds": number(seconds[place]),
      }).map(([key, value]) => {
        const fact = element("div");
        fact.append(element("dt", key), element("dd", value));
        return fact;
      });
      if (parent[place]) {
        const fact = element("div");
        const link = element("dd");
        link.append(this.button(parent[place]));
        fact.append(element("dt", "parent"), link);
        facts.push(fact);
      }
      panel.querySelector(".facts").replaceChildren(...facts);
      panel.querySelector(".message").textContent = message[place];
      const code = panel.querySelector("code");
      code.textContent = "";
      panel.hidden = false;
      title.focus();
      panel.scrollIntoView({ block: "nearest" });
      const text = pack[place] < 0 ? null : (await this.texts(pack[place]))[this.within[place]];
      const lacking =
        pack[place] === -1
          ? "No program was read from the answer."
          : "The text is not in this page, which is to stay small; data=FOLDER writes it.";
      code.textContent = text === null ? lacking : text;
    }

    async texts(pack) {
      if (!this.unpacked.has(pack)) this.unpacked.set(pack, await unpack(this.packs[pack]));
      return this.unpacked.get(pack);
    }
  }

  const start = async () => {
    for (const section of document.querySelectorAll("section.programs")) {
      const viewer = new Viewer(section);
      viewers.set(section.dataset.run, viewer);
      await viewer.open().catch((error) => report("The programs can't be listed", error));
    }
    let drawn = 0;
    for (const place of document.querySelectorAll(".chart")) {
      await draw(place).then(
        () => drawn++,
        (error) => report(`Figure ${place.dataset.figure} can't be drawn`, error),
      );
      await new Promise((next) => setTimeout(next));
    }
    document.documentElement.dataset.drawn = drawn;
  };

  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll(".steps details")) each.open = true;
  });
  addEventListener("error", (event) => report("The page has an error", event.message));
  start().catch((error) => report("The page has an error", error));
})();
