// Follows the progress of one start. The hub sends one event for each change; texts are plain and stay plain.
(function () {
  "use strict";
  const root = document.getElementById("gw-wait");
  const find = (id) => document.getElementById(id);
  const [now, log, again, cancel] = ["gw-now", "gw-log", "gw-again", "gw-cancel"].map(find);
  const steps = [...find("gw-steps").children];
  const title = find("gw-title").textContent;
  let current = -1;
  let begun = Date.now();
  let over = false;

  function span(milliseconds) {
    const seconds = Math.round(milliseconds / 1000);
    return seconds < 90 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }

  function tick() {
    const took = Date.now() - begun;
    if (!over && steps[current] && took >= 1000) {
      steps[current].querySelector(".gw-took").textContent = span(took);
    }
  }

  function go(number) {
    if (number === current) {
      return;
    }
    tick();
    current = number;
    begun = Date.now();
    steps.forEach((step, index) => {
      step.classList.toggle("gw-done", index < number);
      step.classList.toggle("gw-current", index === number);
      if (index === number) {
        step.setAttribute("aria-current", "step");
      } else {
        step.removeAttribute("aria-current");
      }
    });
    tick();
  }

  function tell(text, kind) {
    now.className = `gw-now${kind ? ` gw-${kind}` : ""}`;
    if (now.textContent === text) {
      return;
    }
    now.textContent = text;
    const line = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = new Date().toLocaleTimeString();
    line.append(time, text);
    log.append(line);
  }

  function fail(text) {
    over = true;
    now.setAttribute("role", "alert");
    tell(text, "failed");
    steps[Math.max(current, 0)].classList.add("gw-current", "gw-stuck");
    find("gw-title").textContent = title.replace(/^Starting (.*)$/, "$1 did not start");
    document.title = find("gw-title").textContent;
    find("gw-hint").hidden = true;
    again.hidden = false;
    cancel.hidden = true;
  }

  const events = new EventSource(root.dataset.progressUrl);
  events.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (event.ready) {
      events.close();
      go(steps.length);
      tell("Ready. Opening it …", "ready");
      window.location.reload(); // leads to the server
      return;
    }
    if (event.failed) {
      events.close();
      fail((event.message || "The start failed.").replace(/^Spawn failed: /, ""));
      return;
    }
    const step = steps.findIndex((one) => one.dataset.stages.split(" ").includes(event.stage));
    if (step >= 0) {
      go(step);
    }
    if (event.message && event.stage) {
      tell(event.message, event.warning ? "warning" : "");
    }
  };
  // The browser asks again by itself, except where the hub has nothing to tell any more.
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED && !over) {
      setTimeout(() => window.location.reload(), 3000);
    }
  };
  go(0);
  setInterval(tick, 1000);

  // What is canceled holds its server until its pod is gone.
  async function leave() {
    const headers = { "X-XSRFToken": window.jhdata.xsrf_token };
    let answer;
    do {
      await new Promise((done) => setTimeout(done, 500));
      answer = await window.fetch(again.href, { headers }).catch(() => null);
    } while (!answer || new URL(answer.url).pathname.startsWith(`${root.dataset.baseUrl}spawn-pending/`));
    window.location.assign(again.href);
  }

  cancel.hidden = false;
  cancel.addEventListener("click", () => {
    cancel.disabled = true;
    over = true;
    events.close();
    tell("Canceling the start.", "");
    require(["jhapi"], (JHAPI) => {
      const api = new JHAPI(root.dataset.baseUrl);
      const answer = { success: leave, error: () => window.location.reload() };
      if (root.dataset.server) {
        api.stop_named_server(root.dataset.user, root.dataset.server, answer);
      } else {
        api.stop_server(root.dataset.user, answer);
      }
    });
  });
  window._jupyterhub_page_loaded = true; // as the hub's own pages say it
})();
