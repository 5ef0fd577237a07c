// Charts: smoothing, a log axis, and a chart over the whole width, from `data-frame` (least and
// most value, top, floor, left, right) and `data-values`. Values at the pointer stay those logged.
"use strict";
(() => {
  document.body.classList.add("scripted");
  const make = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    if (text !== undefined) element.textContent = text;
    return element;
  };
  // An exponential moving average without the bias of its start, as TensorBoard smooths.
  const smoothed = (values, weight) => {
    let sum = 0;
    let all = 0;
    return values.map((value) => {
      sum = weight * sum + (1 - weight) * value;
      all = weight * all + (1 - weight);
      return sum / all;
    });
  };
  // The numbers 1, 2 and 5 of each power of ten, from the last below `low` to the first above.
  const marks = (low, high) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      [1, 2, 5].forEach((digit) => found.push(Number(`${digit}e${power}`)));
    }
    const first = found.findLastIndex((mark) => mark <= low * 1.000001);
    const last = found.findIndex((mark) => mark >= high * 0.999999 && mark > found[first]);
    return found.slice(first, last + 1);
  };
  const shown = (value) => (value >= 0.01 && value < 10000 ? String(value)
    : value.toExponential().replace("e+", "e"));

  const adjust = (chart, weight, wantsLog) => {
    const [low, high, top, floor, left, right] = chart.dataset.frame.split(" ").map(Number);
    const lines = [...chart.querySelectorAll("polyline.line")].map((line) => ({
      line,
      xs: line.getAttribute("points").split(" ").map((each) => each.split(",")[0]),
      ys: line.dataset.values.split(" ").map((each) => Number(each.split(",")[1])),
    }));
    const positive = lines.flatMap(({ ys }) => ys).filter((value) => value > 0);
    const log = wantsLog && positive.length > 0;
    const rows = log ? marks(Math.min(...positive), Math.max(...positive)) : [];
    const [a, b] = log ? [rows[0], rows.at(-1)].map(Math.log10) : [low, high];
    const place = (value) => {
      if (log && value <= 0) return floor;
      const share = ((log ? Math.log10(value) : value) - a) / (b - a);
      return Math.min(floor, Math.max(top, floor - share * (floor - top)));
    };
    const points = (xs, ys) => xs.map((x, number) => `${x},${place(ys[number]).toFixed(1)}`).join(" ");
    chart.querySelectorAll("polyline.raw, g.rows.log").forEach((each) => each.remove());
    lines.forEach(({ line, xs, ys }) => {
      if (weight > 0) {
        const colour = [...line.classList].find((name) => /^s\d$/.test(name));
        line.before(make("polyline", { class: `raw ${colour}`, points: points(xs, ys) }));
      }
      line.setAttribute("points", points(xs, smoothed(ys, weight)));
    });
    // Dots and error bars keep where they were drawn, as values.
    const value = (y) => low + ((floor - y) / (floor - top)) * (high - low);
    chart.querySelectorAll("circle.dot, line.whisker").forEach((each) => {
      each.style.display = weight > 0 ? "none" : "";
      ["cy", "y1", "y2"].filter((name) => each.hasAttribute(name)).forEach((name) => {
        each.dataset[name] ??= each.getAttribute(name);
        each.setAttribute(name, place(value(Number(each.dataset[name]))).toFixed(1));
      });
    });
    const plain = chart.querySelector("g.rows");
    plain.classList.toggle("off", log);
    if (!log) return;
    const group = make("g", { class: "rows log" });
    const named = rows.length > 7 ? rows.filter((row) => /^1(e|0*$)|^0\.0*1$/.test(shown(row))) : rows;
    (named.length > 1 ? named : rows).forEach((row) => {
      const y = place(row).toFixed(1);
      group.append(make("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      const at = { class: "tick", x: left - 5, y: Number(y) + 3.5, "text-anchor": "end" };
      group.append(make("text", at, shown(row)));
    });
    plain.after(group);
  };

  document.querySelectorAll("form.controls").forEach((form) => {
    form.hidden = false;
    const apply = () => {
      const weight = Number(form.elements.smoothing.value);
      form.querySelector("output").textContent = String(weight);
      form.closest("section").querySelectorAll("svg.chart")
        .forEach((chart) => adjust(chart, weight, form.elements.log.checked));
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.reset();
  });
  document.querySelectorAll("section .grid > figure > figcaption").forEach((caption) => {
    if (!caption.parentElement.querySelector(".plot")) return;
    caption.addEventListener("click", () => caption.parentElement.classList.toggle("full"));
  });
})();
