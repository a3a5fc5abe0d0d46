"use strict";
// What both pages draw of an overview (overview.py). Text of a cluster goes into the page as text
// nodes and attributes alone: `node` is the only function that makes elements.
const parts = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROWS_MAX = 200;

  function node(name, attributes = {}, ...children) {
    const made = SVG_NAMES.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
    return made;
  }
  const SVG_NAMES = new Set(["svg", "path", "rect", "line", "text", "circle", "title"]);
  const fill = (place, ...children) => place.replaceChildren(...children.flat(Infinity).filter(child => child !== null));

  // Numbers

  const whole = value => value === null || value === undefined ? "–" : value.toLocaleString("en");
  const rate = value => value === null || value === undefined ? "–"
    : value >= 100 || value === 0 ? whole(Math.round(value)) : value.toFixed(value < 1 ? 2 : 1);
  function size(value) {
    if (value === null || value === undefined) return "–";
    const unit = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = 0;
    while (value >= 1024 && power < 4) { value /= 1024; power++; }
    return (power ? value.toFixed(value < 10 ? 1 : 0) : value) + " " + unit[power];
  }
  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "–";
    if (seconds < 60) return (seconds < 10 && seconds % 1 ? seconds.toFixed(1) : Math.round(seconds)) + " s";
    if (seconds < 5400) return Math.round(seconds / 60) + " min";
    return seconds < 172800 ? Math.round(seconds / 3600) + " h" : Math.round(seconds / 86400) + " days";
  }
  const two = number => String(number).padStart(2, "0");
  const day = time => { const d = new Date(time); return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`; };
  const clock = time => { const d = new Date(time); return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`; };
  const LAST_MOMENT = 8.64e15; // of a Date; a producer may give a message any time
  const moment = time => Math.abs(time) > LAST_MOMENT ? `${whole(time)} ms` : `${day(time)} ${clock(time)}`;
  const counted = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
  function short(value) {
    for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (value >= unit) return +(value / unit).toPrecision(3) + letter;
    return String(+value.toPrecision(3));
  }

  // A table whose rows can be sorted and filtered; both last through `update`.
  // columns: {name, title, number, cell(row) → text or element, value(row) → what it is sorted by}
  class Table {
    constructor(columns, { filter = null, sort = null, falling = false, empty = "There are none.", label }) {
      Object.assign(this, { columns, sort, falling, empty, rows: [], limit: ROWS_MAX, label });
      this.body = node("tbody");
      this.heads = columns.map(column => node("th", { scope: "col", class: column.number && "number", title: column.title },
        column.value ? node("button", { type: "button", onclick: () => this.sortBy(column) }, column.name) : column.name));
      this.count = node("span", { class: "dim", "aria-live": "polite" });
      this.more = node("button", { type: "button", onclick: () => { this.limit += 1000; this.draw(); } }, "Show more");
      this.input = filter && node("input", { type: "search", placeholder: "Filter by name", "aria-label": `Filter ${label}`, oninput: () => this.draw() });
      this.wanted = filter;
      this.place = node("div", {}, node("div", { class: "tools" }, this.input, this.count),
        node("div", { class: "scroll" }, node("table", { "aria-label": label }, node("thead", {}, node("tr", {}, this.heads)), this.body)), this.more);
    }
    sortBy(column) {
      this.falling = this.sort === column.name ? !this.falling : Boolean(column.number);
      this.sort = column.name;
      this.draw();
    }
    update(rows) { this.rows = rows; this.draw(); return this.place; }
    draw() {
      const text = this.input ? this.input.value.trim().toLowerCase() : "";
      let rows = text ? this.rows.filter(row => this.wanted(row).toLowerCase().includes(text)) : [...this.rows];
      const column = this.columns.find(one => one.name === this.sort);
      this.heads.forEach((head, index) => {
        if (this.columns[index] === column) head.setAttribute("aria-sort", this.falling ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      if (column) {
        const sign = this.falling ? -1 : 1, known = value => value !== null && value !== undefined;
        rows.sort((a, b) => {
          const [x, y] = [column.value(a), column.value(b)];
          if (!known(x) || !known(y)) return known(y) - known(x);
          return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
        });
      }
      const found = rows.length, focused = this.body.contains(document.activeElement) && document.activeElement.getAttribute("href");
      rows = rows.slice(0, this.limit);
      fill(this.body, rows.length ? rows.map(row => node("tr", {}, this.columns.map(one =>
        node("td", { class: one.number ? "number" : one.wide ? "name" : null }, one.cell(row))))) :
        node("tr", {}, node("td", { colspan: this.columns.length, class: "empty" }, text ? `No name has "${text}" in it.` : this.empty)));
      if (focused) [...this.body.querySelectorAll("a")].find(link => link.getAttribute("href") === focused)?.focus();
      this.count.textContent = found > rows.length ? `${whole(rows.length)} of ${whole(found)}` : text ? `${whole(found)} of ${whole(this.rows.length)}` : "";
      this.more.hidden = found <= rows.length;
    }
  }
  const toned = (value, isBad, text = whole(value)) => isBad ? node("span", { class: "bad" }, text) : text;

  // Charts: points are [time in ms, value], ascending

  function ceiling(most) {
    const power = 10 ** Math.floor(Math.log10(most || 1));
    return [1, 2, 2.5, 5, 10].map(step => step * power).find(top => top >= most) || 1;
  }
  function lineChart(points, label, { width = 320, height = 96 } = {}) {
    const LEFT = 40, BOTTOM = 18, TOP = 7;
    if (points.length < 2) return node("p", { class: "empty" }, "One look so far: a line needs two.");
    const [from, to] = [points[0][0], points.at(-1)[0]];
    const most = Math.max(...points.map(point => point[1])), top = ceiling(most);
    const x = time => LEFT + (time - from) / (to - from || 1) * (width - LEFT - 5);
    const y = value => height - BOTTOM - value / top * (height - BOTTOM - TOP);
    const path = points.map(([time, value], index) => `${index ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const said = `${label}: from ${short(points[0][1])} to ${short(points.at(-1)[1])} within ${duration((to - from) / 1000)}, at most ${short(most)}`;
    const spot = node("circle", { class: "spot", r: 3, cx: -9, cy: -9 }), tip = node("text", { x: LEFT + 4, y: 16 });
    const time = to - from > 86400000 ? day : clock;
    const chart = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
      [0, top / 2, top].map(value => [node("line", { class: "rule", x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
        node("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, short(value))]),
      node("path", { class: "area", d: `${path}L${x(to).toFixed(1)} ${y(0)}L${LEFT} ${y(0)}Z` }), node("path", { class: "line", d: path }),
      node("text", { x: LEFT, y: height - 4 }, time(from)), node("text", { x: width - 2, y: height - 4, "text-anchor": "end" }, time(to)), spot, tip);
    chart.addEventListener("pointermove", event => {
      const box = chart.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * width;
      const near = points.reduce((best, point) => Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best);
      spot.setAttribute("cx", x(near[0])); spot.setAttribute("cy", y(near[1]));
      tip.textContent = `${short(near[1])} at ${clock(near[0])}`;
    });
    return chart;
  }
  const chartOf = (points, name, about, label) => node("figure", {}, node("figcaption", {}, node("h3", {}, name), node("span", {}, about)), lineChart(points, label));
  function spark(points) {
    if (!points || points.length < 2) return "";
    const width = 90, height = 16, most = Math.max(1, ...points.map(point => point[1]));
    const [from, to] = [points[0][0], points.at(-1)[0]];
    const path = points.map(([time, value], index) =>
      `${index ? "L" : "M"}${((time - from) / (to - from || 1) * width).toFixed(1)} ${(height - 1 - value / most * (height - 2)).toFixed(1)}`).join("");
    return node("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, node("path", { class: "line", d: path }));
  }
  // A count beside its fair share, which a mark shows.
  function balance(value, most, mean, kind) {
    const width = 120, scale = width / (most || 1);
    return node("svg", { viewBox: `0 0 ${width} 12`, width, height: 12, role: "img", "aria-label": `${value}, a fair share is ${short(mean)}` },
      node("rect", { class: `bar ${kind}`, x: 0, y: 2, width: value * scale, height: 8 }),
      node("line", { class: "mean", x1: mean * scale, x2: mean * scale, y1: 0, y2: 12 }));
  }

  // Sections of an overview

  function figures(data) {
    const incoming = data.topics.every(row => row.per_second === null) ? null : data.topics.reduce((sum, row) => sum + row.per_second, 0);
    const alive = data.brokers.filter(row => row.is_alive).length, behind = data.groups.filter(row => row.verdict && !["OK", "WATCHING"].includes(row.verdict)).length;
    const count = data.topics.reduce((sum, row) => sum + row.partitions, 0);
    const problems = data.findings && data.findings.filter(one => one.severity === "problem").length;
    return node("dl", { class: "figures" }, [
      ["brokers", whole(alive), alive === 0],
      ...(data.has_zookeeper ? [["controller", data.controller === null ? "none" : `broker ${data.controller}`, data.controller === null]] : []),
      ["topics", whole(data.topics.length)], ["partitions", whole(count)],
      ["offline", whole(data.offline), data.offline > 0], ["under-replicated", whole(data.under_replicated), data.under_replicated > 0],
      ["messages in per second", rate(incoming)], ["groups", whole(data.groups.length)],
      ["groups not OK", whole(behind), behind > 0], ...(problems === null ? [] : [["problems", whole(problems), problems > 0]]),
    ].map(([name, value, isBad]) => node("div", {}, node("dt", {}, name), node("dd", { class: isBad && "bad" }, String(value)))));
  }
  function failedRequests(data) {
    if (!data.failed_requests.length) return null;
    const shown = data.failed_requests.slice(0, 5), rest = data.failed_requests.length - shown.length;
    return node("div", { class: "banner" }, node("strong", {}, "Not everything could be asked: "), shown.join("; "), rest ? ` and ${rest} more` : "", ".");
  }
  const since = data => data.since_ms === null ? "Rates need a second look." : `Rates are of the last ${duration((data.now_ms - data.since_ms) / 1000)}, since ${moment(data.since_ms)}.`;

  function brokersTable() {
    const alive = () => table.rows.filter(row => row.is_alive).length || 1;
    const mean = key => table.rows.reduce((sum, row) => sum + row[key], 0) / alive();
    const most = key => Math.max(1, ...table.rows.map(row => row[key]), mean(key));
    const bar = (key, kind) => row => balance(row[key], most(key), mean(key), kind);
    const table = new Table([
      { name: "broker", number: true, value: row => row.broker, cell: row => String(row.broker) },
      { name: "address", wide: true, value: row => row.address, cell: row => row.is_alive ? row.address : node("span", { class: "bad" }, "not registered") },
      { name: "controller", cell: row => row.is_controller ? "yes" : "" },
      { name: "leads", number: true, value: row => row.leaders, cell: row => whole(row.leaders) }, { name: "", cell: bar("leaders", "") },
      { name: "replicas", number: true, value: row => row.replicas, cell: row => whole(row.replicas) }, { name: "", cell: bar("replicas", "pale") },
      { name: "out of sync", number: true, value: row => row.out_of_sync, cell: row => toned(row.out_of_sync, row.out_of_sync > 0) },
      { name: "in per s", title: "messages into the partitions that it leads", number: true, value: row => row.per_second, cell: row => rate(row.per_second) },
    ], { label: "brokers", empty: "No broker is registered." });
    return table;
  }

  // For each broker a square for each replica on it. Arrow keys move through them.
  function brokerMap(data) {
    const all = [];
    for (const [topic, rows] of Object.entries(data.partitions))
      for (const [number, leader, replicas, isr] of rows) all.push({ topic, number, leader, replicas, isr });
    const caption = node("p", { class: "caption", "aria-live": "polite" }, "Point at a square, or go to a broker and press the arrow keys.");
    const on = new Map(data.brokers.map(row => [row.broker, []]));
    for (const partition of all) for (const broker of partition.replicas) on.get(broker)?.push(partition);
    const most = Math.max(0, ...[...on.values()].map(list => list.length));
    const step = most > 2000 ? 4 : most > 500 ? 7 : most > 120 ? 11 : 15, edge = step - (step > 4 ? 2 : 1);
    const cards = [];
    const pick = partition => {
      for (const card of cards) card.mark(partition);
      const alive = data.brokers.some(row => row.is_alive && row.broker === partition.leader);
      caption.textContent = `${partition.topic} ${partition.number}: ${alive ? "leader " + partition.leader : "no leader"}, replicas ${partition.replicas.join(", ")}, in sync ${partition.isr.join(", ") || "none"}`;
    };
    for (const row of data.brokers) {
      const list = on.get(row.broker), picked = node("path", { class: "picked", d: "" });
      const square = (index, columns) => `M${index % columns * step} ${Math.floor(index / columns) * step}h${edge}v${edge}h-${edge}z`;
      const kinds = ["leads", "follows", "behind"].map(kind => node("path", { class: kind }));
      const drawn = node("svg", { tabindex: list.length ? 0 : null, role: "img", "aria-label": `${counted(list.length, "replica")} on broker ${row.broker}` }, kinds, picked);
      let columns = 1, at = -1;
      const draw = () => {
        const width = drawn.clientWidth || 240;
        columns = Math.max(1, Math.floor((width + step - edge) / step));
        const height = Math.ceil(list.length / columns) * step;
        drawn.setAttribute("viewBox", `-1 -1 ${width} ${height + 2}`); drawn.setAttribute("height", height + 2);
        const paths = [[], [], []];
        list.forEach((partition, index) => paths[!row.is_alive || !partition.isr.includes(row.broker) ? 2 : partition.leader === row.broker ? 0 : 1].push(square(index, columns)));
        kinds.forEach((path, index) => path.setAttribute("d", paths[index].join("")));
      };
      cards.push({ draw, mark(partition) { const index = list.indexOf(partition); at = index < 0 ? at : index; picked.setAttribute("d", index < 0 ? "" : square(index, columns)); } });
      drawn.addEventListener("pointermove", event => {
        const box = drawn.getBoundingClientRect(), index = Math.floor((event.clientY - box.top - 1) / step) * columns + Math.floor((event.clientX - box.left - 1) / step);
        if (list[index]) pick(list[index]);
      });
      drawn.addEventListener("keydown", event => {
        const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
        if (!by) return;
        event.preventDefault();
        pick(list[Math.max(0, Math.min(list.length - 1, at + by))]);
      });
      cards.at(-1).place = node("section", { class: row.is_alive ? null : "gone" }, node("h3", {}, `Broker ${row.broker}`),
        node("p", {}, row.is_alive ? row.address + (row.is_controller ? ", controller" : "") : node("span", { class: "bad" }, "not registered")), drawn);
    }
    const key = (kind, text) => node("span", {}, node("svg", { width: 11, height: 11, "aria-hidden": "true" }, node("path", { class: kind, d: "M0 0h11v11h-11z" })), text);
    const draw = () => cards.forEach(card => card.draw());
    return { draw, place: node("div", {}, node("div", { class: "legend" }, key("leads", "leads"), key("follows", "follows, in sync"), key("behind", "out of sync or down")),
      node("div", { class: "map" }, cards.map(card => card.place)), most ? caption : node("p", { class: "dim" }, "There are no topics, so no broker has a replica.")) };
  }
  function leaderless(data) {
    const alive = new Set(data.brokers.filter(row => row.is_alive).map(row => row.broker)), found = [];
    for (const [topic, rows] of Object.entries(data.partitions))
      for (const [number, leader] of rows) if (!alive.has(leader)) found.push(`${topic} ${number}`);
    if (!found.length) return null;
    return node("p", { class: "bad" }, `No leader: ${found.slice(0, 12).join(", ")}${found.length > 12 ? ` and ${found.length - 12} more` : ""}.`);
  }

  function topicsTable({ link = name => name, knowsBytes = false } = {}) {
    return new Table([
      { name: "topic", wide: true, value: row => row.topic, cell: row => link(row.topic) },
      { name: "in per s", number: true, value: row => row.per_second, cell: row => rate(row.per_second) },
      { name: "messages", title: "from the start to the end of the logs", number: true, value: row => row.messages, cell: row => whole(row.messages) },
      knowsBytes && { name: "bytes", title: "in the log directories that were looked into", number: true, value: row => row.bytes, cell: row => size(row.bytes) },
      { name: "partitions", number: true, value: row => row.partitions, cell: row => whole(row.partitions) },
      { name: "offline", number: true, value: row => row.offline, cell: row => toned(row.offline, row.offline > 0) },
      { name: "under-replicated", number: true, value: row => row.under_replicated, cell: row => toned(row.under_replicated, row.under_replicated > 0) },
    ].filter(Boolean), { filter: row => row.topic, sort: "topic", label: "topics", empty: "There are no topics." });
  }
  const verdict = name => name === null ? "–" : node("span", { class: { OK: "good", WARN: "warn", WATCHING: "dim" }[name] || "bad" }, name);
  function groupsTable(lags, link = name => name) {
    return new Table([
      { name: "group", wide: true, value: row => row.group, cell: row => link(row.group) },
      { name: "verdict", value: row => row.verdict, cell: row => verdict(row.verdict) },
      { name: "lag", number: true, value: row => row.lag, cell: row => whole(row.lag) },
      { name: "late", title: "how long ago the next message that it reads was written", number: true, value: row => row.seconds_late, cell: row => duration(row.seconds_late) },
      { name: "lag over time", cell: row => spark(lags()[row.group]) },
      { name: "members", number: true, value: row => row.members, cell: row => whole(row.members) },
      { name: "state", title: "what its coordinator says", value: row => row.state, cell: row => row.state || "–" },
      { name: "partitions", number: true, value: row => row.partitions, cell: row => whole(row.partitions) },
      { name: "read per s", number: true, value: row => row.per_second, cell: row => rate(row.per_second) },
    ], { filter: row => row.group, sort: "lag", falling: true, label: "groups", empty: "There are no consumer groups." });
  }
  function lagCharts(data, most) {
    const shown = [...data.groups].sort((a, b) => (b.lag ?? -1) - (a.lag ?? -1)).filter(row => (data.trends.lags[row.group] || []).length > 1).slice(0, most);
    return node("div", { class: "charts" }, shown.map(row => chartOf(data.trends.lags[row.group], row.group, verdict(row.verdict), `lag of ${row.group}`)));
  }
  const directories = rows => new Table([
    { name: "directory", wide: true, cell: row => row.path },
    { name: "free", number: true, cell: row => row.fault ? toned(1, true, row.fault) : size(row.free) },
    { name: "of", number: true, cell: row => row.fault ? "" : size(row.total) },
  ], { label: "log directories" }).update(rows);
  function findingsList(findings) {
    if (!findings.length) return node("p", { class: "good" }, "The doctor found nothing wrong.");
    return node("ul", { class: "findings" }, findings.map(one => node("li", { class: one.severity },
      node("p", {}, node("span", { class: one.severity === "problem" ? "bad" : "dim" }, one.severity), " ", node("strong", {}, one.where), `: ${one.what}`),
      node("p", { class: "dim" }, one.why), act(one.command))));
  }
  function act(text) { // words, or a command, or words that end with one
    const at = text.indexOf("kafka08 "), words = at < 0 ? text : text.slice(0, at);
    return node("p", {}, `Do: ${words}`, at < 0 ? null : node("code", {}, text.slice(at)));
  }

  return { node, fill, Table, whole, rate, size, duration, clock, moment, counted, chartOf, figures, failedRequests, since, leaderless,
    brokersTable, brokerMap, topicsTable, groupsTable, lagCharts, findingsList, directories, verdict, toned };
})();
