// The report: its figures and programs stand in the page.
(() => {
  const ROWS = 20; // programs of a page of the list
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const viewers = new Map();

  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  class Packs {
    constructor(section) {
      this.packed = section.querySelector(".index").textContent;
      this.packs = [...section.querySelectorAll(".pack")].map((each) => each.textContent);
      this.unpacked = new Map();
    }

    async open() {
      this.index = await unpack(this.packed);
      this.places = new Map(this.index.id.map((id, place) => [id, place]));
      const inPack = new Map();
      this.within = this.index.pack.map((pack) => {
        const place = inPack.get(pack) || 0;
        inPack.set(pack, place + 1);
        return place;
      });
    }

    outcome(place) {
      const { outcome, reason } = this.index;
      return reason[place] ? `${outcome[place]}: ${reason[place]}` : outcome[place];
    }

    row(place) {
      const columns = ["id", "score", "gain", "operator", "island", "seconds", "parent", "best"];
      const row = Object.fromEntries(columns.map((each) => [each, this.index[each][place]]));
      return { ...row, outcome: this.outcome(place) };
    }

    async list({ order, outcome, words, page }) {
      const { id, operator, message, rank } = this.index;
      const fits = (place) =>
        (!outcome || this.outcome(place) === outcome) &&
        (!words || `${id[place]} ${operator[place]} ${message[place]}`.toLowerCase().includes(words));
      const chosen = id.map((_, place) => place).filter(fits);
      if (order === "newest") chosen.reverse();
      if (order === "best") chosen.sort((a, b) => rank[a] - rank[b]);
      const first = page * ROWS;
      return {
        rows: chosen.slice(first, first + ROWS).map((place) => this.row(place)),
        first,
        total: chosen.length,
        outcomes: [...new Set(id.map((_, place) => this.outcome(place)))].sort(),
      };
    }

    async program(id) {
      const place = this.places.get(id);
      if (place === undefined) return null;
      const pack = this.index.pack[place];
      const text =
        pack >= 0
          ? (await this.texts(pack))[this.within[place]]
          : pack === -1
            ? "No program was read from the answer."
            : "The text is not in this page, which is to stay small; data=FOLDER writes it.";
      return { ...this.row(place), message: this.index.message[place], text };
    }

    async texts(pack) {
      if (!this.unpacked.has(pack)) this.unpacked.set(pack, await unpack(this.packs[pack]));
      return this.unpacked.get(pack);
    }
  }

  const start = async () => {
    for (const section of document.querySelectorAll("section.programs")) {
      const packs = new Packs(section);
      const viewer = new brood.Viewer(section, packs);
      viewers.set(section.dataset.run, viewer);
      await packs
        .open()
        .then(() => viewer.list())
        .catch((error) => brood.report("The programs can't be listed", error));
    }
    let drawn = 0;
    for (const place of document.querySelectorAll(".chart")) {
      const { figure, alt, run } = place.dataset;
      const said = { name: figure, words: alt, viewer: viewers.get(run) };
      await brood.draw(place, figures[figure], said).then(
        () => drawn++,
        (error) => brood.report(`Figure ${figure} can't be drawn`, error),
      );
      await new Promise((next) => setTimeout(next));
    }
    document.documentElement.dataset.drawn = drawn;
  };

  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll(".steps details")) each.open = true;
  });
  start().catch((error) => brood.report("The page has an error", error));
})();
