(() => {
  "use strict";
  const live = document.getElementById("live");
  const said = document.getElementById("said");
  const prefix = new URL("./", document.baseURI).pathname;
  const xsrf = document.querySelector('meta[name="xsrf"]').content;
  const CALLS = {
    keep: (b) => ["api/keep", { server: b.dataset.server }],
    stop: (b) => ["api/stop", { server: b.dataset.server, save: false }],
    "save-stop": (b) => ["api/stop", { server: b.dataset.server, save: true }],
    "admin-stop": (b) => ["api/admin/stop", { user: b.dataset.user, server: b.dataset.server }],
    release: () => ["api/admin/release", {}],
  };
  const QUESTIONS = {
    stop: "Stop this workspace? Your files stay; what is not saved is lost.",
    "admin-stop": "Stop this workspace? Its files stay; what its kernels hold in memory is lost.",
  };

  const say = (text) => {
    said.textContent = text;
    said.hidden = !text;
  };

  let typing = 0;
  const find = () => {
    const address = new URL(location.href);
    address.searchParams.set("find", document.getElementById("find").value);
    history.replaceState(null, "", address);
    clearTimeout(typing);
    typing = setTimeout(refresh, 250);
  };

  const name = (one) => JSON.stringify([one.tagName, one.dataset]);
  const alike = (one) => [...live.querySelectorAll("a, button, summary")].filter((other) => name(other) === one);

  async function refresh() {
    const asked = location.href;
    try {
      const answer = await fetch(asked, { headers: { Accept: "text/html", "X-XSRFToken": xsrf } });
      if (!answer.ok || answer.redirected || asked !== location.href) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      const open = [...live.querySelectorAll("details")].map((one) => one.open);
      const focus = live.contains(document.activeElement) ? name(document.activeElement) : "";
      const place = alike(focus).indexOf(document.activeElement);
      live.replaceChildren(...fresh.childNodes);
      live.querySelectorAll("details").forEach((one, n) => { one.open = open[n] ?? one.open; });
      alike(focus)[place]?.focus({ preventScroll: true });
    } catch { /* the next round tries again */ }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-act]");
    if (!button) return;
    const { act } = button.dataset;
    if (QUESTIONS[act] && !confirm(QUESTIONS[act])) return;
    const [path, body] = CALLS[act](button);
    button.disabled = true;
    say("");
    try {
      const answer = await fetch(prefix + path, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-XSRFToken": xsrf },
        body: JSON.stringify(body),
      });
      if (!answer.ok) say((await answer.json()).message);
    } catch {
      say("The idle-culler does not answer. Try again in a minute.");
    }
    await refresh();
  });
  document.addEventListener("input", (event) => { if (event.target.id === "find") find(); });
  setInterval(() => { if (!document.hidden) refresh(); }, 15000);
})();
