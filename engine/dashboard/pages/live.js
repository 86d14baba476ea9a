// What both pages need: the token, what the server tells, what is asked of it.
const live = (() => {
  const KEY = "brood-token";
  // Behind the #, the token is sent to nobody; from here on it is not in the address either.
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  const token = () => sessionStorage.getItem(KEY) || "";
  const path = (name) => name.split("/").map(encodeURIComponent).join("/");

  const linked = (is) => {
    document.getElementById("link").className = is ? "linked" : "";
    document.getElementById("linked").textContent = is ? "live" : "not connected; trying again";
  };

  // Listens to what the server tells at an address; the browser connects again by itself.
  const listen = (address, handlers) => {
    const source = new EventSource(address);
    source.onopen = () => linked(true);
    source.onerror = () => linked(false);
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, (event) => handle(event.data, source));
    addEventListener("pagehide", () => source.close());
  };

  const fetched = async (address) => {
    const answer = await fetch(address);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  };

  const ask = async (name, kind, text) => {
    const answer = await fetch(`/steer/${path(name)}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Brood-Token": token() },
      body: JSON.stringify({ kind, text }),
    });
    if (!answer.ok) throw new Error((await answer.json()).error);
  };

  const share = (value) =>
    value === null || value === undefined ? "-" : `${(100 * value).toFixed(1)}%`;

  const whole = (value) =>
    value === null || value === undefined ? "-" : Math.round(value).toLocaleString("en");

  const took = (seconds) => {
    document.getElementById("took").textContent = `refreshed in ${Math.round(1000 * seconds)} ms`;
  };

  const state = (row) => (row.reading && row.candidates === undefined ? "reading" : row.state);

  return { ask, fetched, listen, path, share, whole, state, took, mayAsk: () => token() !== "" };
})();
