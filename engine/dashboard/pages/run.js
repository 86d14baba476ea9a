// One run: its totals, its figures, its programs, and the wheel.
(() => {
  const find = (id) => document.getElementById(id);
  const name = find("run").dataset.name;
  const FACTS = {
    problem: (row) => row.problem,
    model: (row) => row.model,
    seed: (row) => String(row.seed),
    "best score": (row) => brood.number(row.best_score),
    "best program": (row) => row.best_program || "-",
    "initial score": (row) => brood.number(row.initial_score),
    candidates: (row) => live.whole(row.candidates),
    children: (row) => live.whole(row.children),
    valid: (row) => live.share(row.valid),
    "hit rate": (row) => live.share(row.hit_rate),
    calls: (row) => live.whole(row.calls),
    "generated tokens": (row) => live.whole(row.generated_tokens),
    seconds: (row) => live.whole(row.seconds),
    waiting: (row) => live.whole(row.waiting),
  };
  let row = {};

  const set = (place, text) => {
    if (place.textContent !== text) place.textContent = text;
  };

  // Programs.

  const programs = new brood.Viewer(document.querySelector("section.programs"), {
    list: (asked) => live.fetched(`/programs/${live.path(name)}?${new URLSearchParams(asked)}`),
    program: (id) =>
      live
        .fetched(`/program/${live.path(name)}?${new URLSearchParams({ id })}`)
        .catch((error) => brood.report("The program can't be shown", error)),
  });

  // Totals and the wheel.

  const tell = (data) => {
    const now = JSON.parse(data);
    if (row.state && now.state !== row.state) set(find("news"), `The run is ${now.state}.`);
    else if (row.best_program && now.best_program !== row.best_program)
      set(find("news"), `New best score: ${brood.number(now.best_score)}.`);
    row = now;
    const state = live.state(row);
    set(find("state"), state);
    find("state").className = `state ${state}`;
    set(find("error"), row.error);
    find("no-figures").hidden = figures.size > 0 || row.error !== "";
    if (row.candidates !== undefined) {
      const values = Object.entries(FACTS).map(([key, value]) => [key, value(row)]);
      find("facts").replaceChildren(...brood.facts(Object.fromEntries(values)));
    }
    const goes = row.state === "running" || row.state === "paused";
    find("wheel").hidden = !goes || !live.mayAsk();
    find("at-rest").hidden = goes;
    find("no-token").hidden = !goes || live.mayAsk();
    find("pause").disabled = row.state !== "running";
    find("resume").disabled = row.state !== "paused";
    find("shown-hint").hidden = !row.hint;
    set(find("hint-text"), row.hint);
  };

  const ask = (kind, said, text = "") =>
    live.ask(name, kind, text).then(
      () => set(find("asked"), said),
      (error) => set(find("asked"), `That was refused: ${error.message}`),
    );

  find("pause").addEventListener("click", () =>
    ask("pause", "Asked to pause: what is under way ends first."),
  );
  find("resume").addEventListener("click", () => ask("resume", "Asked to go on."));
  find("stop").addEventListener("click", () => find("sure").showModal());
  find("not").addEventListener("click", () => find("sure").close());
  find("really").addEventListener("click", () => {
    find("sure").close();
    ask("stop", "Asked to stop.");
  });
  find("hint").addEventListener("submit", (event) => {
    event.preventDefault();
    ask("hint", "The hint was left.", find("text").value);
  });
  find("clear").addEventListener("click", () => ask("hint", "Asked to show no hint.", ""));

  // Figures: drawn again when they have changed and can be seen, and nobody points at them.

  const figures = new Map();
  const visible = new IntersectionObserver(
    (seen) => {
      for (const each of seen) {
        const figure = figures.get(each.target.id.slice("figure-".length));
        if (figure) figure.isVisible = each.isIntersecting;
        if (figure && figure.isVisible) draw(figure);
      }
    },
    { rootMargin: "300px" },
  );

  const made = (content) => {
    const place = brood.element("figure");
    place.id = `figure-${content.name}`;
    const chart = brood.element("div", undefined, "chart");
    chart.dataset.run = "run";
    const details = brood.element("details", undefined, "numbers");
    const summary = brood.element("summary", "In words and numbers");
    summary.append(brood.element("span", `: ${content.title}`, "hidden"));
    details.append(summary, brood.element("p"), brood.element("div", undefined, "wide"));
    place.append(brood.element("figcaption"), chart, brood.element("p", "", "note"), details);
    const figure = { place, chart, details, isVisible: false, isDrawing: false };
    chart.addEventListener("pointerleave", () => draw(figure));
    details.addEventListener("toggle", () => table(figure));
    visible.observe(place);
    return figure;
  };

  const table = ({ details, content }) => {
    if (!details.open) return;
    const [, words, wide] = details.children;
    set(words, content.alt);
    if (!content.rows.length) return wide.replaceChildren();
    wide.tabIndex = 0;
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-label", content.title);
    const left = content.total > content.rows.length;
    const caption = `${content.title}${left ? ` (${content.rows.length} of ${content.total} rows)` : ""}`;
    const head = brood.element("tr");
    for (const each of content.columns) {
      const cell = brood.element("th", each);
      cell.scope = "col";
      head.append(cell);
    }
    const lines = content.rows.map((values) => {
      const line = brood.element("tr");
      const kind = (value) => (typeof value === "number" ? "number" : "");
      line.append(...values.map((each) => brood.element("td", brood.number(each), kind(each))));
      return line;
    });
    const [whole, top, body] = ["table", "thead", "tbody"].map((each) => brood.element(each));
    top.append(head);
    body.append(...lines);
    whole.append(brood.element("caption", caption), top, body);
    wide.replaceChildren(whole);
  };

  const draw = async (figure) => {
    const { chart, content } = figure;
    if (!figure.isVisible || figure.isDrawing || figure.drawn === content) return;
    if (figure.drawn && chart.matches(":hover")) return;
    figure.isDrawing = true;
    const next = brood.element("div", undefined, "next");
    chart.append(next);
    const said = { name: content.name, words: content.alt, viewer: programs };
    try {
      const { finalize } = await brood.draw(next, content, said);
      next.classList.remove("next");
      chart.replaceChildren(next);
      if (figure.finalize) figure.finalize();
      figure.finalize = finalize;
      figure.drawn = content;
      chart.dataset.drawn = Number(chart.dataset.drawn || 0) + 1;
    } catch (error) {
      next.remove();
      brood.report(`Figure ${content.name} can't be drawn`, error);
    }
    figure.isDrawing = false;
    if (figure.drawn && figure.drawn !== figure.content) setTimeout(() => draw(figure), 200);
  };

  const change = (data) => {
    const { order, seconds, figures: fresh } = JSON.parse(data);
    live.took(seconds);
    for (const content of fresh) {
      if (!figures.has(content.name)) figures.set(content.name, made(content));
      const figure = figures.get(content.name);
      figure.content = content;
      const [title, , note] = figure.place.children;
      set(title, content.title);
      set(note, content.note);
      table(figure);
      draw(figure);
    }
    for (const gone of [...figures.keys()].filter((each) => !order.includes(each))) {
      visible.unobserve(figures.get(gone).place);
      figures.get(gone).place.remove();
      figures.delete(gone);
    }
    const wanted = order.map((each) => figures.get(each).place);
    const all = find("figures");
    wanted.forEach((each, place) => {
      if (all.children[place] !== each) all.insertBefore(each, all.children[place] || null);
    });
    find("no-figures").hidden = order.length > 0;
    const count = document.querySelector(".count");
    count.setAttribute("aria-live", "off"); // nobody asked for it: it is not to be read out
    programs.turn(0).then(() => count.setAttribute("aria-live", "polite"));
  };

  live.listen(`/follow/${live.path(name)}`, {
    facts: tell,
    figures: change,
    gone: (data, source) => {
      source.close();
      set(find("error"), "The run's folder is gone.");
    },
  });
})();
