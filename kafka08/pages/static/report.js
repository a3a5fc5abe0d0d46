{
  const { node } = parts;
  const data = JSON.parse(document.getElementById("overview").textContent);
  const page = document.getElementById("page");
  const section = (title, ...children) => node("section", { "aria-label": title }, node("h2", {}, title), children);
  document.title = `Kafka report, ${parts.moment(data.now_ms)}`;
  parts.fill(document.getElementById("about"), `${data.connect}, ${parts.moment(data.now_ms)}. ${parts.since(data)}`);
  const map = parts.brokerMap(data);
  const problems = data.findings.filter(one => one.severity === "problem");
  parts.fill(page,
    parts.figures(data), parts.failedRequests(data),
    problems.length ? section("Problems", parts.findingsList(problems)) : null,
    section("Brokers", data.brokers.length ? [parts.brokersTable().update(data.brokers), map.place, parts.leaderless(data)]
      : node("p", { class: "empty" }, "No broker is registered in ZooKeeper, and no topic names one. Is the chroot of the connect string right?")),
    section("Topics", parts.topicsTable({ knowsBytes: data.log_directories.length > 0 }).update(data.topics)),
    section("Groups", parts.groupsTable(() => data.trends.lags).update(data.groups)),
    section("Over time", node("div", { class: "charts" }, parts.chartOf(data.trends.incoming, "all topics", "messages in per second", "messages in per second")),
      node("h2", {}, "Lag of groups"), parts.lagCharts(data, 12)),
    data.log_directories.length ? section("Log directories", new parts.Table([
      { name: "directory", wide: true, cell: row => row.path },
      { name: "free", number: true, cell: row => row.fault ? parts.toned(1, true, row.fault) : parts.size(row.free) },
      { name: "of", number: true, cell: row => row.fault ? "" : parts.size(row.total) },
    ], { label: "log directories" }).update(data.log_directories)) : null,
    section("Findings of the doctor", problems.length && problems.length === data.findings.length
      ? node("p", { class: "dim" }, "Nothing but the problems above.") : parts.findingsList(data.findings.filter(one => one.severity !== "problem"))));
  map.draw();
  addEventListener("resize", map.draw);
}
