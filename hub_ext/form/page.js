// Comforts only: without this script every workspace can be chosen and started just the same.
(function () {
  "use strict";
  const root = document.getElementById("gpu-workspaces");
  const form = root.closest("form");

  function chosen() {
    return form.querySelector("input[name=profile]:checked");
  }

  // The button says what it will start.
  function nameButton() {
    const radio = chosen();
    const button = form.querySelector("button[type=submit]");
    if (radio && button) {
      button.textContent = "Start " + radio.labels[0].textContent.trim();
    } else if (button) {
      button.disabled = !form.querySelector("input[name=profile]:enabled");
    }
  }

  // Take away what does not go with the other choices of the same card; the server refuses it anyway.
  function offer(card) {
    const picked = {};
    for (const select of card.querySelectorAll("[data-choice]")) {
      picked[select.dataset.choice] = select.value;
    }
    for (const option of card.querySelectorAll("option[data-requires]")) {
      const requires = JSON.parse(option.dataset.requires);
      option.disabled = Object.entries(requires).some(([name, values]) => !values.includes(picked[name]));
    }
    // A browser does not send an answer that is taken away while it is chosen: choose one that is seen.
    for (const select of card.querySelectorAll("[data-choice]")) {
      if (select.selectedOptions[0]?.disabled) {
        select.value = [...select.options].find((option) => !option.disabled)?.value;
      }
    }
  }

  // Size, price and room depend on the answers. The hub's own page says them for a link with these answers.
  let asked = 0;
  async function refresh(card) {
    const radio = card.querySelector("input[name=profile]");
    const query = new URLSearchParams({ "opt-profile": radio.value });
    for (const select of card.querySelectorAll("[data-choice]")) {
      const typed = select.closest(".gw-question").querySelector("input");
      const isTyped = typed && select.value.endsWith(":");
      query.set("opt-" + select.dataset.choice, isTyped ? select.value + typed.value.trim() : select.value);
    }
    const turn = ++asked;
    const address = window.location.pathname + "?" + query;
    const headers = { "X-XSRFToken": window.jhdata?.xsrf_token ?? "" };
    const answer = await window.fetch(address, { headers }).catch(() => null);
    const text = answer?.ok ? await answer.text() : "";
    const page = new DOMParser().parseFromString(text, "text/html");
    const same = [...page.querySelectorAll("input[name=profile]")].find((one) => one.value === radio.value);
    if (turn !== asked || !same || !(same.checked || same.disabled)) {
      return;
    }
    for (const part of [".gw-about", ".gw-price", ".gw-sharing"]) {
      const [shown, fresh] = [card, same.closest(".gw-card")].map((one) => one.querySelector(part));
      if (shown && fresh) {
        shown.innerHTML = fresh.innerHTML; // made by the same template, where everything is escaped
      }
    }
  }

  form.addEventListener("change", (event) => {
    nameButton();
    const card = event.target.closest(".gw-card");
    if (card) {
      offer(card);
      if (event.target.name !== "profile") {
        refresh(card);
      }
    }
  });
  // One start is asked for once; a page that comes back from the past says what was true then.
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) {
      event.preventDefault();
    }
    sent = true;
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) {
      window.location.reload();
    }
  });
  document.addEventListener("DOMContentLoaded", () => {
    nameButton();
    root.querySelectorAll(".gw-card").forEach(offer);
    const card = chosen()?.closest(".gw-card");
    if (card && card.getBoundingClientRect().top > window.innerHeight * 0.7) {
      card.scrollIntoView({ block: "center" });
    }
  });
})();
