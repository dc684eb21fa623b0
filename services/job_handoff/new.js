"use strict";
// Shows only the fields that belong to the file that was picked; without this, all of them.
const path = document.querySelector("select[name=path]");
function fit() {
  const notebook = path.value.endsWith(".ipynb");
  for (const one of document.querySelectorAll(".jh-notebook")) one.hidden = !notebook;
  for (const one of document.querySelectorAll(".jh-script")) one.hidden = notebook;
}
if (path) {
  path.addEventListener("change", fit);
  fit();
}
