// Episodes: lists with filters over one stage or all, one task under two policies, pages, keys,
// state in the address. Texts come from runs and are only ever assigned as text. Blocks are
// unpacked when looked at.
"use strict";
(() => {
  const PER_PAGE = 12;
  const FIELDS = ["stage", "against", "moved", "end", "low", "high", "text"];
  const ROLES = { s: "system", u: "environment", a: "agent" };
  const EQUAL = 1e-9;
  const ALL = "*";
  const form = document.getElementById("filters");
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!form || !data.stages.length) return;
  const field = (name) => form.elements[name];
  const part = (id) => document.getElementById(id);
  if (!("DecompressionStream" in window)) {
    part("found").textContent = "This browser is too old to unpack episodes.";
    return;
  }
  const stages = new Map(data.stages.map((stage, place) => [stage.name, { ...stage, place }]));

  const unpacked = new Map();
  const unpack = (id) => {
    if (!unpacked.has(id)) unpacked.set(id, read(id));
    return unpacked.get(id);
  };
  const read = async (id) => {
    const bytes = Uint8Array.from(atob(part(id).textContent), (letter) => letter.charCodeAt(0));
    const stream = new DecompressionStream("deflate");
    const writer = stream.writable.getWriter();
    writer.write(bytes);
    writer.close();
    return JSON.parse(await new Response(stream.readable).text());
  };
  const index = async (stage) => (await unpack(`index-${stage.place}`)).map(
    ([id, task, reward, end, turns, invalid], number) =>
      ({ id, task, reward, end, turns, invalid, number, stage }));
  const body = async (row) => {
    const { starts, place } = row.stage;
    const block = starts.findLastIndex((start) => start <= row.number);
    const { texts, rows } = await unpack(`episodes-${place}-${block}`);
    return { texts, ...rows[row.number - starts[block]] };
  };

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
  const sum = (values) => values.reduce((total, each) => total + each, 0);
  const shown = (reward) => (reward === null ? "none" : String(Number(reward.toPrecision(4))));
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  const message = (role, text, name, notes = []) => {
    const block = make("div", `message ${role} ${name}`);
    const head = make("b", "", name || ROLES[role]);
    notes.forEach((note) => head.append(make("span", "tag", note)));
    block.append(head);
    block.append(make("pre", "", text === "" ? "(empty)" : text));
    return block;
  };
  const fill = async (block, row) => {
    const { texts, messages, prompt, last, report, error, rewards } = await body(row);
    let turn = 0;
    messages.forEach(([role, text, raw, ...flags], place) => {
      const notes = flags;
      if (role === "a" && place >= prompt) {
        turn += 1;
        notes.unshift(`turn ${turn}`);
        if (rewards) notes.push(`reward ${shown(rewards[turn - 1] ?? null)}`);
      }
      block.append(message(role, texts[text], place < prompt ? "prompt" : "", notes));
      if (raw !== null && raw !== undefined) block.append(message(role, texts[raw], "as generated"));
    });
    if (last !== null) block.append(message("u", texts[last], ""));
    if (report !== null) block.append(message("u", texts[report], "reported"));
    if (error) block.append(make("p", "down", error));
  };
  const tags = (row) => {
    const end = make("span", "tag", "");
    end.append(make("i", `end-${row.end}`), String(row.end));
    const found = [end, make("span", "tag", `reward ${shown(row.reward)}`),
      make("span", "tag", counted(row.turns, "turn"))];
    if (row.invalid) found.push(make("span", "tag", `${row.invalid} invalid`));
    return found;
  };
  const folded = (key, title, marks, content) => {
    const block = make("details", "episode");
    block.dataset.key = key;
    const summary = make("summary");
    summary.append(make("b", "", title), ...marks);
    block.append(summary);
    block.addEventListener("toggle", async () => {
      if (block.open && block.childElementCount === 1) {
        const inside = make("div", "inside");
        block.append(inside);
        await content(inside);
      }
      if (block.open && open !== key) { open = key; write(); }
      if (!block.open && open === key) { open = ""; write(); }
    });
    return block;
  };
  const single = (row, key) => folded(key, row.id,
    [...(key === row.id ? [] : [make("span", "tag stage", row.stage.name)]), ...tags(row)],
    (block) => fill(block, row));
  const pair = ({ task, mine, other, difference }) => {
    const word = moved(difference);
    const marks = [
      make("span", "tag", `${shown(mean(other))} → ${shown(mean(mine))}`),
      make("span", `tag ${{ better: "up", worse: "down", equal: "" }[word]}`, word),
    ];
    return folded(task, task, marks, async (block) => {
      block.classList.add("two");
      for (const rows of [other, mine]) {
        const column = make("div", "policy");
        column.append(make("h4", "", rows[0].stage.name));
        block.append(column);
        for (const row of rows) {
          const head = make("p", "attempt");
          head.append(make("b", "", row.id), ...tags(row));
          column.append(head);
          await fill(column, row);
        }
      }
    });
  };

  const mean = (rows) => {
    const found = rows.map((row) => row.reward).filter((reward) => reward !== null);
    return found.length ? sum(found) / found.length : null;
  };
  const moved = (difference) =>
    (Math.abs(difference) < EQUAL ? "equal" : difference > 0 ? "better" : "worse");
  const byTask = (rows) => {
    const found = new Map();
    rows.forEach((row) => found.set(row.task, [...(found.get(row.task) ?? []), row]));
    return found;
  };
  // Tasks that both have a reward for, those that differ most first.
  const paired = (rows, others) => {
    const there = byTask(others);
    return [...byTask(rows)].map(([task, mine]) => ({ task, mine, other: there.get(task) ?? [] }))
      .filter(({ mine, other }) => mean(mine) !== null && mean(other) !== null)
      .map((each) => ({ ...each, difference: mean(each.mine) - mean(each.other) }))
      .sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
  };

  // The numbers of rows that hold a text; null where another search has started meanwhile.
  const holding = async (stage, rows, wanted, still) => {
    const found = new Set(rows.filter((row) => row.id.toLowerCase().includes(wanted))
      .map((row) => row.number));
    for (let block = 0; block < stage.starts.length; block += 1) {
      part("found").textContent =
        `searching ${stage.name}, ${block + 1} of ${stage.starts.length} …`;
      const { texts, rows: bodies } = await unpack(`episodes-${stage.place}-${block}`);
      if (!still()) return null;
      const hits = texts.map((text) => text.toLowerCase().includes(wanted));
      bodies.forEach(({ messages, last, report }, place) => {
        const places = [...messages.flatMap(([, ...texts]) => texts), last, report];
        if (places.some((text) => text !== null && hits[text])) {
          found.add(stage.starts[block] + place);
        }
      });
    }
    return found;
  };
  const kept = async (stage, still) => {
    const rows = await index(stage);
    const bounded = field("low").value !== "" || field("high").value !== "";
    const low = field("low").value === "" ? -Infinity : Number(field("low").value);
    const high = field("high").value === "" ? Infinity : Number(field("high").value);
    const end = field("end").value;
    const wanted = field("text").value.toLowerCase();
    const hits = wanted ? await holding(stage, rows, wanted, still) : null;
    if (wanted && hits === null) return null;
    return rows.filter((row) => (!end || row.end === end) && (!hits || hits.has(row.number)) &&
      (!bounded || (row.reward !== null && row.reward >= low && row.reward <= high)));
  };

  let page = 0;
  let open = "";
  let turn = 0;
  let items = [];

  // Lists what the form requests, on the page of what is open.
  const list = async () => {
    turn += 1;
    const mine = turn;
    const still = () => mine === turn;
    const all = field("stage").value === ALL;
    field("against").disabled = all;
    const stage = stages.get(field("stage").value);
    const against = all ? undefined : stages.get(field("against").value);
    field("moved").parentElement.hidden = !against;
    const chosen = all ? [...stages.values()] : [stage];
    const rows = [];
    for (const each of chosen) {
      const found = await kept(each, still);
      if (!found || !still()) return;
      rows.push(...found);
    }
    let text;
    if (against) {
      // The filters choose tasks; of these all attempts are shown.
      const tasks = new Set(rows.map((row) => row.task));
      const attempts = (await index(stage)).filter((row) => tasks.has(row.task));
      const pairs = paired(attempts, await index(against));
      if (!still()) return;
      const wanted = field("moved").value;
      items = pairs.filter((each) => !wanted || moved(each.difference) === wanted)
        .map((each) => ({ key: each.task, block: () => pair(each) }));
      const counts = ["better", "worse", "equal"].map((word) =>
        `${pairs.filter((each) => moved(each.difference) === word).length} ${word}`);
      text = `${stage.name} compared with ${against.name}: ${counts.join(", ")} of `
        + `${counted(pairs.length, "common task")}, those that differ most first.`;
      if (stage.shown < stage.total || against.shown < against.total) {
        text += " Not all of their episodes are in this page.";
      }
    } else {
      items = rows.map((row) => {
        const key = all ? `${row.stage.name}/${row.id}` : row.id;
        return { key, block: () => single(row, key) };
      });
      const [there, total] = ["shown", "total"].map((name) => sum(chosen.map((each) => each[name])));
      text = `${all ? counted(chosen.length, "stage") : stage.name}: ${rows.length} match; `
        + (there < total ? `${there} of ${total} episodes are in this page, spread evenly.`
          : `all of ${all ? "their" : "its"} ${total} episodes are in this page.`);
    }
    part("found").textContent = text;
    const place = items.findIndex((item) => item.key === open);
    if (place >= 0) page = Math.floor(place / PER_PAGE); else open = "";
    draw();
  };
  const draw = () => {
    const pages = Math.max(1, Math.ceil(items.length / PER_PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    part("page").textContent = `page ${page + 1} of ${pages}`;
    part("previous").disabled = page === 0;
    part("next").disabled = page === pages - 1;
    const blocks = items.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map((item) => item.block());
    blocks.forEach((block) => { block.open = block.dataset.key === open; });
    part("episodes").replaceChildren(...blocks);
  };
  const fillEnds = () => {
    const ends = {};
    const stage = stages.get(field("stage").value);
    (stage ? [stage] : [...stages.values()]).forEach((each) => Object.entries(each.ends)
      .forEach(([end, count]) => { ends[end] = (ends[end] ?? 0) + count; }));
    const before = field("end").value;
    field("end").replaceChildren(option("", "any"),
      ...Object.entries(ends).sort(([, a], [, b]) => b - a).map(([end, count]) => option(end, `${end} (${count})`)));
    field("end").value = Object.hasOwn(ends, before) ? before : "";
  };

  // The address says what is shown, so that it can be sent to others.
  const write = () => {
    const words = new URLSearchParams();
    FIELDS.forEach((name) => { if (field(name).value) words.set(name, field(name).value); });
    if (page) words.set("page", String(page + 1));
    if (open) words.set("open", open);
    history.replaceState(null, "", `#trajectories&${words}`);
  };
  const follow = async () => {
    const [place, ...rest] = location.hash.slice(1).split("&");
    if (place !== "trajectories" || !rest.length) return false;
    const words = new URLSearchParams(rest.join("&"));
    const stage = words.get("stage");
    field("stage").value = stages.has(stage) || stage === ALL ? stage : data.first;
    fillEnds();
    FIELDS.slice(1).forEach((name) => { field(name).value = words.get(name) ?? ""; });
    page = (Number(words.get("page")) || 1) - 1;
    open = words.get("open") ?? "";
    await list();
    const shownBlock = document.querySelector("#episodes details[open]");
    (shownBlock ?? part("trajectories")).scrollIntoView();
    return true;
  };
  const turnTo = (number) => { page = number; open = ""; draw(); write(); };

  // j and k open the next and the previous one.
  const step = (by) => {
    const before = items.findIndex((item) => item.key === open);
    const place = before < 0 ? page * PER_PAGE : before + by;
    if (place < 0 || place >= items.length) return;
    open = items[place].key;
    if (Math.floor(place / PER_PAGE) !== page || before < 0) {
      page = Math.floor(place / PER_PAGE);
      draw();
    }
    part("episodes").querySelectorAll("details.episode").forEach((block) => {
      block.open = block.dataset.key === open;
      if (block.open) {
        block.firstElementChild.focus({ preventScroll: true });
        block.scrollIntoView({ block: "start" });
      }
    });
    write();
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea, button")) return;
    const by = { j: 1, k: -1 }[event.key];
    if (by) { step(by); event.preventDefault(); }
  });

  if (data.stages.length > 1) field("stage").append(option(ALL, `all ${data.stages.length} stages`));
  data.stages.forEach(({ name }) => {
    field("stage").append(option(name, name));
    field("against").append(option(name, name));
  });
  field("stage").value = data.first;
  fillEnds();
  form.addEventListener("input", async (event) => {
    if (event.target.name === "stage") fillEnds();
    page = 0;
    open = "";
    await list();
    write();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  part("previous").addEventListener("click", () => turnTo(page - 1));
  part("next").addEventListener("click", () => turnTo(page + 1));
  addEventListener("hashchange", follow);
  follow().then((followed) => { if (!followed) list(); });
})();
