"use strict";
// Adds what clocks show where the viewer is, wherever that is not what they show in the zone of a schedule.
function localize(root) {
  for (const one of root.querySelectorAll("time[data-zone]")) {
    const show = (timeZone) =>
      new Intl.DateTimeFormat("en", {
        weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone,
      }).format(new Date(one.dateTime));
    let theirs;
    try {
      theirs = show(one.dataset.zone);
    } catch {
      theirs = ""; // a zone that this browser does not know
    }
    if (show() !== theirs) one.textContent += ` (${show()} where you are)`;
  }
}
