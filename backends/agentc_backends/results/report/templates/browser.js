// The trajectory browser: filters, pages, and episodes that are built when they are opened.
// Texts come from runs and are only ever assigned as text.
"use strict";
(() => {
  const PER_PAGE = 12;
  const ROLES = { s: "system", u: "environment", a: "agent" };
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");

  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const option = (value, text) => {
    const element = make("option", "", text);
    element.value = value;
    return element;
  };
  const shown = (reward) => (reward === null ? "none" : String(Number(reward.toPrecision(4))));

  const message = (role, text, name) => {
    const block = make("div", `message ${role} ${name}`);
    block.append(make("b", "", name || ROLES[role]));
    block.append(make("pre", "", text === "" ? "(empty)" : text));
    return block;
  };
  const fill = (block, row) => {
    row.messages.forEach(([role, text, raw], index) => {
      block.append(message(role, data.texts[text], index < row.prompt ? "prompt" : ""));
      if (raw !== undefined) block.append(message(role, data.texts[raw], "as generated"));
    });
    if (row.last !== null) block.append(message("u", data.texts[row.last], ""));
    if (row.report !== null) block.append(message("u", data.texts[row.report], "reported"));
    if (row.error) block.append(make("p", "down", row.error));
  };
  const episode = (row) => {
    const block = make("details", "episode");
    const summary = make("summary");
    summary.append(make("b", "", row.id));
    const end = make("span", "tag", "");
    end.append(make("i", `end-${row.end}`), row.end);
    summary.append(end, make("span", "tag", `reward ${shown(row.reward)}`));
    summary.append(make("span", "tag", `${row.turns} turns`));
    if (row.invalid) summary.append(make("span", "tag", `${row.invalid} invalid`));
    block.append(summary);
    block.addEventListener("toggle", () => {
      if (block.open && block.childElementCount === 1) fill(block, row);
    });
    return block;
  };

  const browse = () => {
    const stages = data.stages;
    const ends = new Set(stages.flatMap((stage) => stage.rows.map((row) => row.end)));
    stages.forEach((stage, index) => form.stage.append(option(index, stage.name)));
    [...ends].sort().forEach((end) => form.end.append(option(end, end)));
    let page = 0;

    const matching = (stage) => {
      const low = form.low.value === "" ? -Infinity : Number(form.low.value);
      const high = form.high.value === "" ? Infinity : Number(form.high.value);
      const bounded = form.low.value !== "" || form.high.value !== "";
      const wanted = form.text.value.toLowerCase();
      return stage.rows.filter((row) =>
        (!form.end.value || row.end === form.end.value) &&
        (!bounded || (row.reward !== null && row.reward >= low && row.reward <= high)) &&
        (!wanted || row.id.toLowerCase().includes(wanted) ||
          row.messages.some(([, ...texts]) =>
            texts.some((text) => data.texts[text].toLowerCase().includes(wanted)))));
    };
    const draw = () => {
      const stage = stages[Number(form.stage.value)];
      const rows = matching(stage);
      const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
      page = Math.min(Math.max(page, 0), pages - 1);
      const kept = stage.shown < stage.total
        ? `${stage.shown} of its ${stage.total} episodes are in this page, spread evenly`
        : `all of its ${stage.total} episodes are in this page`;
      document.getElementById("found").textContent = `${stage.name}: ${rows.length} match; ${kept}.`;
      document.getElementById("page").textContent = `page ${page + 1} of ${pages}`;
      document.getElementById("previous").disabled = page === 0;
      document.getElementById("next").disabled = page === pages - 1;
      const first = page * PER_PAGE;
      document.getElementById("episodes")
        .replaceChildren(...rows.slice(first, first + PER_PAGE).map(episode));
    };
    form.addEventListener("input", () => { page = 0; draw(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("previous").addEventListener("click", () => { page -= 1; draw(); });
    document.getElementById("next").addEventListener("click", () => { page += 1; draw(); });
    draw();
  };

  // A link to a job opens its settings.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);

  // Buttons that copy the text of the element they name; without a script they stay hidden.
  document.querySelectorAll("button.copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "selected";
      }
    });
  });
  if (form && data.stages.length) browse();
  reveal();
})();
