"use strict";
{
  const { node, fill } = parts;
  const $ = id => document.getElementById(id);
  const RETRY_MS = 3000;
  let state = null, view = null, paused = false, unreachable = null;
  // A report has the state and the answers in the page.
  const kept = $("snapshot") && JSON.parse($("snapshot").textContent);

  async function jsonOf(response) {
    const found = await response.json();
    if (!response.ok) throw new Error(found.error || `The console responded with ${response.status}.`);
    return found;
  }
  const own = (object, name) => object && Object.hasOwn(object, name) ? object[name] : null;
  async function ask(path, query = {}) {
    if (!kept) return jsonOf(await fetch(`${path}?${new URLSearchParams(query)}`));
    const found = query.name === undefined ? own(kept.answers, path) : own(own(kept.answers, path), query.name);
    if (!found) throw new Error("The report has no more of it: kafka08 console has.");
    return found;
  }
  const post = async change => jsonOf(await fetch("/api/change", { method: "POST", body: JSON.stringify(change),
    headers: { "Content-Type": "application/json", "X-Kafka08-Page": state.page_token } }));
  const link = (place, ...names) => node("a", { href: ["#", place, ...names.map(encodeURIComponent)].join("/") }, names.at(-1) ?? place);
  const section = (title, ...children) => node("section", { "aria-label": title }, node("h2", {}, title), children);
  const failed = error => node("p", { class: "bad" }, error.message);

  // Pages: each gives {title, place, update(overview)}

  function overviewPage() {
    const place = node("div"), head = node("div"), mapPlace = node("div"), charts = node("div"), lost = node("div"), disks = node("div");
    const table = parts.brokersTable(), empty = node("p", { class: "empty" });
    let drawn = "", map = null;
    place.append(head, section("Brokers", empty, table.place, mapPlace, lost), charts, disks);
    const topicChanges = state.allows_changes ? section("Changes", changes.ofCluster(post, () => {})) : null;
    if (topicChanges) place.append(topicChanges);
    return { title: "Overview", place, resize: () => map?.draw(), update(data) {
      const problems = (data.findings || []).filter(one => one.severity === "problem");
      fill(head, parts.figures(data), parts.failedRequests(data), problems.length ? section("Problems", parts.findingsList(problems)) : null);
      fill(disks, data.log_directories.length ? section("Log directories", parts.directories(data.log_directories)) : null);
      table.place.hidden = !data.brokers.length;
      empty.textContent = data.brokers.length ? "" : "No broker is registered in ZooKeeper, and no topic names one. Is the chroot of the connect string right?";
      table.update(data.brokers);
      // The map is drawn again only if it changed: whoever moves through it keeps the place.
      const shape = JSON.stringify([data.brokers.map(row => [row.broker, row.is_alive]), Object.entries(data.partitions).map(([topic, rows]) => [topic, rows.map(row => row.slice(0, 4))])]);
      if (shape !== drawn) { drawn = shape; map = parts.brokerMap(data); fill(mapPlace, data.brokers.length ? map.place : null); map.draw(); }
      fill(lost, parts.leaderless(data));
      fill(charts, section("Over time", node("div", { class: "charts" }, parts.chartOf(data.trends.incoming, "all topics", "messages in per second", "messages in per second"))),
        data.groups.length ? section("Lag of groups", parts.lagCharts(data, 6)) : null);
    } };
  }
  function topicsPage() {
    const table = parts.topicsTable({ link: name => link("topic", name), knowsBytes: Boolean(state.overview?.log_directories.length) });
    return { title: "Topics", place: section("Topics", table.place), update: data => table.update(data.topics) };
  }
  function groupsPage() {
    let lags = {};
    const table = parts.groupsTable(() => lags, name => link("group", name));
    return { title: "Groups", place: section("Groups", table.place), update(data) { lags = data.trends.lags; table.update(data.groups); } };
  }
  function topicPage(name) {
    const about = node("div", {}, node("p", { class: "empty" }, "Reading…")), gone = node("p", { class: "bad" });
    const ids = list => list.join(", ") || "none";
    let alive = new Set();
    const table = new parts.Table([
      { name: "partition", number: true, value: row => row[0], cell: row => String(row[0]) },
      { name: "leader", number: true, value: row => row[1], cell: row => parts.toned(row[1], !alive.has(row[1]), alive.has(row[1]) ? String(row[1]) : "none") },
      { name: "replicas", cell: row => ids(row[2]) },
      { name: "in sync", cell: row => parts.toned(row[3], row[3].length < row[2].length, ids(row[3])) },
      { name: "log start", number: true, value: row => row[4], cell: row => parts.whole(row[4]) },
      { name: "log end", number: true, value: row => row[5], cell: row => parts.whole(row[5]) },
      (state.overview?.partitions[name] || []).some(row => row.length > 6) && { name: "in open transactions", number: true, value: row => row[5] - row[6], cell: row => row[5] === null || row.length < 7 ? "–" : parts.whole(row[5] - row[6]) },
      { name: "messages", number: true, value: row => row[5] - row[4], cell: row => row[5] === null || row[4] === null ? "–" : parts.whole(row[5] - row[4]) },
    ].filter(Boolean), { label: `partitions of ${name}`, empty: "It has no partitions." });
    const verdicts = () => new Map((state.overview?.groups || []).map(row => [row.group, row.verdict]));
    const readers = new parts.Table([
      { name: "group", wide: true, value: row => row.group, cell: row => link("group", row.group) },
      { name: "members", number: true, value: row => row.members, cell: row => parts.whole(row.members) },
      { name: "lag here", number: true, value: row => row.lag, cell: row => (row.lag !== null && !row.is_exact ? "at least " : "") + parts.whole(row.lag) },
      { name: "verdict", value: row => verdicts().get(row.group), cell: row => verdicts().has(row.group) ? parts.verdict(verdicts().get(row.group)) : "" },
    ], { label: `groups that read ${name}`, empty: "No group has read it." });
    const load = async () => {
      try {
        const found = await ask("/api/topic", { name });
        readers.update(found.groups);
        const config = Object.entries(found.config).map(([key, value]) => node("div", {}, node("code", {}, `${key}=${value}`)));
        fill(about, node("dl", { class: "facts" }, node("dt", {}, "overrides"), node("dd", {}, config.length ? config : "none")),
          found.marked_for_deletion ? node("p", { class: "bad" }, "It is marked for deletion.") : null);
      } catch (error) { fill(about, failed(error)); }
    };
    load();
    const count = state.overview?.partitions[name]?.length ?? 0;
    return { title: name, place: node("div", {}, node("h2", {}, name), gone, kept ? null : node("p", {}, node("a", { href: `#/messages/${encodeURIComponent(name)}` }, "Messages")), about, table.place, section("Groups", readers.place),
      state.allows_changes ? section("Changes", changes.ofTopic(name, count, post, load)) : null), update(data) {
      alive = new Set(data.brokers.filter(row => row.is_alive).map(row => row.broker));
      gone.textContent = data.partitions[name] ? "" : "There is no such topic.";
      table.update(data.partitions[name] || []);
    } };
  }
  function groupPage(name) {
    const chart = node("div", { class: "charts" }), kinds = node("div", {}, node("p", { class: "empty" }, "Reading…"));
    const again = node("button", { type: "button", hidden: kept !== null, onclick: () => load() }, "Read again");
    async function load() {
      try {
        const found = await ask("/api/group", { name });
        const known = new Map(found.verdicts.map(([topic, partition, ...rest]) => [`${topic} ${partition}`, rest]));
        fill(kinds, found.failed_requests.map(text => node("p", { class: "banner" }, text)),
          found.kinds.length ? found.kinds.map(kind => groupKind(kind, known)) : node("p", { class: "bad" }, "There is no such group."));
      } catch (error) { fill(kinds, failed(error)); }
    }
    load();
    return { title: name, place: node("div", {}, node("h2", {}, name), chart, kinds, again,
      state.allows_changes ? section("Changes", changes.ofGroup(name, post, load)) : null), update(data) {
      const points = data.trends.lags[name], row = data.groups.find(one => one.group === name);
      fill(chart, points ? parts.chartOf(points, "lag", row ? parts.verdict(row.verdict) : "", `lag of ${name}`) : null);
    } };
  }
  function groupKind(kind, known) {
    const isCoordinated = kind.kind === "coordinator";
    const members = new parts.Table([
      { name: "member", wide: true, value: row => row.member, cell: row => row.member },
      isCoordinated && { name: "client", value: row => row.client, cell: row => `${row.client} ${row.host}` },
      { name: "subscribes", wide: true, cell: row => row.fault || (isCoordinated ? row.subscribes.join(", ") : row.subscribes) },
      { name: "owns", number: true, cell: row => parts.whole(isCoordinated ? row.owns.length : row.owns) },
    ].filter(Boolean), { label: "members", empty: "It has no members." });
    const of = row => known.get(`${row.topic} ${row.partition}`) || [];
    const partitions = new parts.Table([
      { name: "topic", wide: true, value: row => row.topic, cell: row => link("topic", row.topic) },
      { name: "partition", number: true, value: row => row.partition, cell: row => String(row.partition) },
      { name: "lag", number: true, value: row => row.lag, cell: row => (row.never_committed && row.lag ? "at least " : "") + parts.whole(row.lag) },
      { name: "verdict", value: row => of(row)[0], cell: row => of(row)[0] ? parts.verdict(of(row)[0]) : "" },
      { name: "late", number: true, value: row => of(row)[1], cell: row => parts.duration(of(row)[1]) },
      { name: "in ZooKeeper", number: true, value: row => row.zookeeper, cell: row => parts.whole(row.zookeeper) },
      { name: "in Kafka", number: true, value: row => row.kafka, cell: row => parts.whole(row.kafka) },
      kind.partitions.some(row => row.kafka_expires_ms !== null) && { name: "expires there", value: row => row.kafka_expires_ms, cell: row => row.kafka_expires_ms === null ? "" : parts.moment(row.kafka_expires_ms) },
      { name: "log end", number: true, value: row => row.log_end, cell: row => parts.whole(row.log_end) },
      { name: "owner", wide: true, value: row => row.owner, cell: row => row.owner ?? node("span", { class: "dim" }, "none") },
    ].filter(Boolean), { label: "partitions", filter: row => `${row.topic} ${row.owner ?? ""}`, sort: "topic", empty: "It has committed nothing and owns nothing." });
    const state_ = isCoordinated ? node("p", {}, `${kind.state}, ${kind.protocol_type || "only commits"} ${kind.protocol}, coordinator ${kind.coordinator.id} at ${kind.coordinator.host}:${kind.coordinator.port}`) : null;
    return section(isCoordinated ? "At its coordinator" : "In ZooKeeper", state_,
      kind.findings.length ? node("ul", { class: "findings" }, kind.findings.map(one => node("li", { class: one.problem ? "problem" : "note" },
        node("p", {}, node("strong", {}, one.subject), `: ${one.says}`), node("p", { class: "dim" }, one.advice)))) : node("p", { class: "good" }, "Nothing is wrong with it."),
      members.update(kind.members), partitions.update(kind.partitions), kind.failed_requests.map(text => node("p", { class: "bad" }, text)));
  }
  function messagesPage(name) {
    const numbers = (state.overview?.partitions[name] || []).map(row => row[0]);
    return { title: `Messages of ${name}`, place: node("div", {}, node("h2", {}, "Messages of ", link("topic", name)), messages.page(name, numbers, ask)), update() {} };
  }
  function doctorPage() {
    const place = node("div"), button = node("button", { type: "button", hidden: kept !== null, onclick: () => load() }, "Examine again");
    async function load() {
      button.disabled = true;
      fill(place, node("p", { class: "empty" }, "The doctor examines the cluster…"));
      try {
        const found = await ask("/api/doctor");
        fill(place, node("p", { class: "dim" }, `${found.checks} checks at ${parts.moment(found.now_ms)}`), parts.findingsList(found.findings));
      } catch (error) { fill(place, failed(error)); }
      button.disabled = false;
    }
    load();
    return { title: "Doctor", place: section("Doctor", place, button), update() {} };
  }
  const PAGES = { "": overviewPage, topics: topicsPage, groups: groupsPage, topic: topicPage, group: groupPage, messages: messagesPage, doctor: doctorPage };
  if (kept) delete PAGES.messages;
  const PLACES = [["", "Overview"], ["topics", "Topics"], ["groups", "Groups"], ["doctor", "Doctor"]];
  const PARENT = { topic: "topics", messages: "topics", group: "groups" };

  function go() {
    if (state === null) return;
    let [, place = "", name] = location.hash.split("/");
    try { name = name === undefined ? undefined : decodeURIComponent(name); } catch { place = ""; }
    if (!Object.hasOwn(PAGES, place) || (PARENT[place] && !name)) place = "";
    const current = PARENT[place] || place;
    fill($("places"), PLACES.map(([where, text]) => node("a", { href: `#/${where}`, "aria-current": where === current ? "page" : null }, text)));
    const isFirst = view === null;
    view = PAGES[place](name);
    document.title = `${view.title} – ${state.connect}`;
    fill($("page"), view.place);
    if (!isFirst) { $("page").focus({ preventScroll: true }); scrollTo(0, 0); }
    show();
  }
  function show() {
    const data = state.overview, at = data ? `as of ${parts.clock(data.now_ms)}` : "";
    $("about").textContent = kept ? `${state.connect}, ${parts.moment(data.now_ms)}. ${parts.since(data)}` : `${state.connect} ${at}`;
    const fault = unreachable ? `The console does not respond: ${unreachable}. What is shown is ${at || "nothing"}.` :
      state.fault ? `The cluster has not responded since ${parts.clock(state.fault_ms)}: ${state.fault}. ${data ? `What is shown is ${at}.` : "There is nothing to show yet."}` : "";
    if ($("fault").textContent !== fault) fill($("fault"), fault ? node("p", { class: "banner bad" }, fault) : null);
    if (data) view.update(data);
    else if (state.fault || unreachable) fill($("page"), node("p", { class: "empty" }, "The cluster was not read yet."));
  }
  async function refresh() {
    if (kept) { state = kept.state; return go(); }
    let wait = RETRY_MS;
    try {
      const response = await fetch(`/api/state?seen=${state?.number ?? ""}`);
      const wasUnreachable = unreachable;
      unreachable = null;
      if (response.status !== 204) {
        const hadData = state?.overview;
        state = await jsonOf(response);
        if (view === null || (!hadData && state.overview)) go(); else show();
      } else if (wasUnreachable) show();
      wait = Math.min(RETRY_MS, state.interval_s * 500);
    } catch (error) {
      unreachable = error.message;
      if (state === null) fill($("fault"), node("p", { class: "banner bad" }, unreachable)); else show();
    }
    if (!paused) setTimeout(refresh, wait);
  }
  $("pause")?.addEventListener("click", () => {
    paused = !paused;
    $("pause").textContent = paused ? "Go on" : "Pause";
    $("pause").setAttribute("aria-pressed", String(paused));
    if (!paused) refresh();
  });
  addEventListener("hashchange", go);
  addEventListener("resize", () => view?.resize?.());
  refresh();
}
