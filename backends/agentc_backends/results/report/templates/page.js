// What the rest of the page does: links to jobs, values under the pointer, buttons that copy.
"use strict";
(() => {
  // A link to a job opens its settings.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();

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

  // Values of a chart at the pointer, of each line at its nearest point.
  const box = document.createElement("div");
  box.className = "hover";
  box.hidden = true;
  document.body.append(box);
  const series = (chart) => [...chart.querySelectorAll("polyline.line")].map((line) => {
    const colour = [...line.classList].find((name) => /^s\d$/.test(name));
    const hints = [...chart.querySelectorAll(`circle.dot.${colour} > title`)]
      .map((title) => title.textContent);
    const places = line.getAttribute("points").split(" ").map((each) => Number(each.split(",")[0]));
    const values = line.dataset.values.split(" ").map((each) => each.split(","));
    return { colour, places, values, label: line.dataset.label,
      hints: hints.length === values.length ? hints : [] };
  });
  const nearest = (places, x) => places.reduce((best, place, number) =>
    (Math.abs(place - x) < Math.abs(places[best] - x) ? number : best), 0);
  document.querySelectorAll("svg.chart").forEach((chart) => {
    let lines;
    const cross = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cross.setAttribute("class", "cross");
    const floor = Math.max(...[...chart.querySelectorAll("line.grid")]
      .map((line) => line.y1.baseVal.value));
    const show = (event) => {
      if (!lines) {
        lines = series(chart);
        // The browser's own hints would lie over these.
        chart.querySelectorAll("polyline > title, circle > title").forEach((each) => each.remove());
        chart.append(cross);
      }
      const x = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(chart.getScreenCTM().inverse()).x;
      const first = lines[0];
      const at = first.places[nearest(first.places, x)];
      box.replaceChildren();
      lines.forEach(({ colour, places, values, hints, label }) => {
        const number = nearest(places, at);
        const row = document.createElement("div");
        const mark = document.createElement("i");
        mark.className = colour;
        const [step, value] = values[number];
        const where = chart.dataset.x ? `${chart.dataset.x} ${step}` : step;
        row.append(mark, hints[number] ?? `${label}, ${where}: ${value}`);
        box.append(row);
      });
      Object.entries({ x1: at, x2: at, y1: 18, y2: floor })
        .forEach(([name, value]) => cross.setAttribute(name, value));
      cross.style.display = "";
      box.hidden = false;
      const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
      box.style.left = `${Math.max(4, left)}px`;
      box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
    };
    chart.addEventListener("pointermove", show);
    chart.addEventListener("pointerdown", show);
    chart.addEventListener("pointerleave", () => {
      box.hidden = true;
      cross.style.display = "none";
    });
  });
})();
