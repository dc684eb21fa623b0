"use strict";
// Keeps the page of a run up to date while it has not ended. Everything shown is set as text or comes from
// the service's own page.
const log = document.getElementById("log");
const EVERY = 3000;
// A cookie counts only with this, also for what is only read: the hub looks at how a browser asks.
const headers = { "X-XSRFToken": document.querySelector("meta[name=xsrf]").content };
const parts = ["status", "line", "files"];

function atEnd() {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 40;
}

async function refresh() {
  const [text, page] = await Promise.all([
    fetch(log.dataset.url, { headers }),
    fetch(location.href, { headers }),
  ]);
  if (text.ok) {
    const follow = atEnd();
    log.textContent = (await text.text()) || "Nothing yet.";
    if (follow) log.scrollTop = log.scrollHeight;
  }
  if (page.ok) {
    const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
    for (const id of parts) {
      const [old, now] = [document.getElementById(id), fresh.getElementById(id)];
      if (old && now && old.innerHTML !== now.innerHTML) old.replaceWith(now);
    }
    if (fresh.getElementById("log")?.dataset.ended === "yes") location.reload();
  }
}

log.scrollTop = log.scrollHeight;
if (log.dataset.ended === "no") {
  setInterval(() => {
    if (!document.hidden) refresh().catch(() => {});
  }, EVERY);
}
