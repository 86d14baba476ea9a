// The table of all runs.
(() => {
  const table = document.getElementById("runs");
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const lines = new Map(); // by their links, which are whole
  let rows = [];
  let more = "";
  let sorting = { key: "name", down: false };

  const told = {
    name: (row) => row.name,
    state: live.state,
    problem: (row) => row.problem || "",
    model: (row) => row.model || "",
    candidates: (row) => live.whole(row.candidates),
    valid: (row) => live.share(row.valid),
    best_score: (row) => brood.number(row.best_score),
    hit_rate: (row) => live.share(row.hit_rate),
    seconds: (row) => live.whole(row.seconds),
  };

  const compare = (a, b) => {
    const [x, y] = [a[sorting.key], b[sorting.key]];
    const lacks = (value) => value === null || value === undefined;
    if (lacks(x) || lacks(y)) return lacks(x) - lacks(y);
    const order =
      typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return sorting.down ? -order : order;
  };

  const line = (row) => {
    if (lines.has(row.href)) return lines.get(row.href);
    const made = brood.element("tr");
    for (const head of heads) {
      const cell = brood.element(head.dataset.key === "name" ? "th" : "td");
      if (head.className) cell.className = head.className;
      if (head.dataset.key === "name") {
        cell.scope = "row";
        const link = brood.element("a", row.name);
        link.href = row.href;
        cell.append(link, brood.element("div", "", "wrong"));
      } else cell.append(brood.element("span"));
      made.append(cell);
    }
    lines.set(row.href, made);
    return made;
  };

  const set = (place, text) => {
    if (place.textContent !== text) place.textContent = text;
  };

  const fill = (row) => {
    const made = line(row);
    heads.forEach((head, number) => {
      const key = head.dataset.key;
      const place = made.cells[number].firstElementChild;
      set(place, told[key](row));
      if (key === "state") place.className = `state ${live.state(row)}`;
    });
    set(made.cells[0].lastElementChild, row.error);
    return made;
  };

  const show = () => {
    const wanted = [...rows].sort(compare).map(fill);
    const there = new Set(rows.map((row) => row.href));
    for (const gone of [...lines.keys()].filter((each) => !there.has(each))) {
      lines.get(gone).remove();
      lines.delete(gone);
    }
    if (wanted.some((each, place) => body.rows[place] !== each)) {
      const focused = document.activeElement;
      body.append(...wanted);
      if (body.contains(focused)) focused.focus();
    }
    for (const head of heads) {
      if (head.dataset.key !== sorting.key) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    }
    const states = rows.map((row) => row.state);
    const counts = ["running", "paused", "stopped", "over", "unreadable"]
      .map((each) => [each, states.filter((state) => state === each).length])
      .filter(([, count]) => count)
      .map(([each, count]) => `${count} ${each}`);
    const said = `${rows.length} ${rows.length === 1 ? "run" : "runs"}: ${counts.join(", ")}${more}`;
    set(document.getElementById("summary"), rows.length ? said : "No run");
    document.getElementById("none").hidden = rows.length > 0;
    table.hidden = rows.length === 0;
  };

  for (const head of heads) {
    head.querySelector("button").addEventListener("click", () => {
      const { key } = head.dataset;
      const down = sorting.key === key ? !sorting.down : head.className === "number";
      sorting = { key, down };
      show();
    });
  }
  live.listen("/events", {
    runs: (data) => {
      const found = JSON.parse(data);
      rows = found.runs;
      more = found.more ? "; the folder has more runs, which are not shown" : "";
      live.took(found.seconds);
      show();
    },
  });
})();
