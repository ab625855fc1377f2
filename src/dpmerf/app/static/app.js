// The page works without this file: it only saves pressing buttons. No library, nothing from elsewhere.
"use strict";

const wait = (work, ms) => { let timer; return () => { clearTimeout(timer); timer = setTimeout(work, ms); }; };
const send = (address, form) => fetch(address, { method: "POST", body: new FormData(form) });

function list(place, words) {
  place.replaceChildren(...words.map(text => Object.assign(document.createElement("li"), { textContent: text })));
}

const here = document.querySelector("nav .here");
if (here) here.scrollIntoView({ inline: "center", block: "nearest", behavior: "instant" });

// Columns: show the boxes of the chosen kind, and all problems while typing.
const columns = document.getElementById("columns");
if (columns) {
  const fit = field => {
    const kind = field.querySelector("select").value;
    field.querySelectorAll("[data-kinds]").forEach(box => { box.hidden = !box.dataset.kinds.split(" ").includes(kind); });
    field.querySelectorAll("[data-examples]").forEach(input => {
      input.placeholder = (JSON.parse(input.dataset.examples)[kind] || ["", ""])[input.dataset.which];
    });
  };
  const fields = [...columns.querySelectorAll("fieldset.column")];
  fields.forEach(fit);
  let asked = 0;
  const check = wait(async () => {
    const turn = ++asked;
    const answer = await send(columns.dataset.live, columns);
    if (!answer.ok || turn !== asked) return;
    const found = await answer.json();
    const summary = document.getElementById("summary");
    summary.textContent = found.words;
    summary.className = found.count ? "todo" : "fine";
    list(document.getElementById("general"), found.general);
    fields.forEach(field => {
      const words = found.columns[field.id.replace("column-", "")] || [];
      list(field.querySelector(".problems"), words);
      field.classList.toggle("wrong", words.length > 0);
    });
    document.getElementById("schema").textContent = found.schema;
  }, 250);
  columns.addEventListener("input", event => {
    const field = event.target.closest("fieldset.column");
    if (field && event.target.name.endsWith(".kind")) fit(field);
    check();
  });
}

// Plan: the slider is on a log scale; the price follows it.
const budget = document.getElementById("budget");
if (budget) {
  const slide = document.getElementById("slide"), epsilon = document.getElementById("epsilon");
  const follow = () => { slide.value = Math.log10(Number(epsilon.value) || 1); };
  follow();
  let asked = 0;
  const price = wait(async () => {
    const turn = ++asked;
    const answer = await send(budget.dataset.price, budget);
    if (!answer.ok || turn !== asked) return;
    document.getElementById("price").innerHTML = await answer.text(); // escaped there
    document.getElementById("commands").textContent = document.getElementById("new-commands").textContent;
  }, 250);
  slide.addEventListener("input", () => { epsilon.value = Number((10 ** slide.value).toPrecision(2)); price(); });
  budget.addEventListener("input", event => { if (event.target === epsilon) follow(); if (event.target !== slide) price(); });
}

// Release: ask how far it is, and go on when it is done.
const job = document.getElementById("job");
if (job) {
  const at = id => document.getElementById(id);
  const look = async () => {
    const state = await (await fetch(job.dataset.state)).json();
    at("job-now").textContent = state.now;
    list(at("job-done"), state.done);
    if (state.share === null) at("job-bar").removeAttribute("value"); else at("job-bar").value = state.share;
    if (state.problem) location.reload(); // it says why, and how to go on
    else if (state.made) location.href = job.dataset.result;
    else setTimeout(look, 400);
  };
  if (at("job-title").textContent === "At work") look();
  else at("job-bar").hidden = true;
}
