"use strict";
// Shows only the fields that belong to the file that was picked; without this, all of them.
const path = document.querySelector("select[name=path]");
function fit() {
  const notebook = path.value.endsWith(".ipynb");
  document.querySelector(".jh-notebook").hidden = !notebook;
  document.querySelector(".jh-script").hidden = notebook;
}
if (path) {
  path.addEventListener("change", fit);
  fit();
}
