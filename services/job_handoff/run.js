// Keeps the page of a run up to date while it has not ended. Everything shown is set as text or comes from
// the service's own page.
const log = document.getElementById("log");
const EVERY = 3000;
// A cookie counts only with this, also for what is only read: the hub looks at how a browser asks.
const headers = { "X-XSRFToken": document.querySelector("meta[name=xsrf]").content };
const parts = ["problem", "status", "line", "files", "runs"];

function atEnd() {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 40;
}

async function refresh() {
  const page = await fetch(location.href, { headers });
  if (!page.ok) return;
  const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
  localize(fresh);
  const said = fresh.getElementById("log");
  if (said && said.textContent !== log.textContent) {
    const follow = atEnd();
    log.textContent = said.textContent;
    if (follow) localize(document);
log.scrollTop = log.scrollHeight;
  }
  for (const id of parts) {
    const [old, now] = [document.getElementById(id), fresh.getElementById(id)];
    if (old && now && old.innerHTML !== now.innerHTML) old.replaceWith(now);
  }
  if (said?.dataset.ended === "yes") location.reload();
}

// One look at a time, however long the service takes.
async function keepUp() {
  if (!document.hidden) await refresh().catch(() => {});
  setTimeout(keepUp, EVERY);
}

localize(document);
log.scrollTop = log.scrollHeight;
if (log.dataset.ended === "no") setTimeout(keepUp, EVERY);
