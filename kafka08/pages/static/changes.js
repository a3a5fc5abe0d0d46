"use strict";
// Forms of changes, which a console with --allow-changes shows. Each is checked by the cluster first, and made when
// what it would do is confirmed.
const changes = (() => {
  const { node, fill } = parts;

  // `fields()` gives the change; `post(change)` returns {says} or throws; `confirm`: a word to type, or null.
  function form(title, inputs, fields, post, { confirm = null, done = () => {} } = {}) {
    const told = node("p", { role: "status" }), decision = node("div");
    const tell = (text, kind) => { told.textContent = text; told.className = kind; };
    async function make(dry) {
      fill(decision);
      try {
        const response = await post({ ...fields(), dry_run: dry });
        tell(response.says, dry ? "" : "good");
        if (!dry) return done();
        const typed = node("input", { "aria-label": `type ${confirm}`, placeholder: confirm, autocomplete: "off" });
        const button = node("button", { type: "button", onclick: () => confirm && typed.value !== confirm ? tell(`Type ${confirm} to confirm.`, "bad") : make(false) }, "Do it");
        fill(decision, node("p", {}, confirm ? [`Type ${confirm}: `, typed, " "] : null, button));
        (confirm ? typed : button).focus();
      } catch (error) { tell(error.message, "bad"); }
    }
    return node("details", { class: "change" }, node("summary", {}, title),
      node("form", { class: "ask", onsubmit: event => { event.preventDefault(); make(true); } }, inputs, node("button", {}, "Check")), told, decision);
  }
  const labelled = (text, input) => node("label", {}, text, input);
  const numberInput = value => node("input", { type: "number", min: 1, class: "narrow", required: true, value });
  function overrides(text) {
    const found = {};
    for (const line of text.split("\n").map(one => one.trim()).filter(Boolean)) {
      const at = line.indexOf("=");
      if (at < 1) throw new Error(`"${line}" is not KEY=VALUE`);
      found[line.slice(0, at).trim()] = line.slice(at + 1).trim();
    }
    return found;
  }

  function ofCluster(post, done) {
    const name = node("input", { required: true, autocomplete: "off" }), partitions = numberInput(1), factor = numberInput(1);
    const config = node("textarea", { rows: 1, placeholder: "retention.ms=3600000" });
    return [
      form("Create a topic", [labelled("name", name), labelled("partitions", partitions), labelled("replicas", factor), labelled("overrides, one a line", config)],
        () => ({ verb: "create_topic", topic: name.value, partitions: +partitions.value, replication_factor: +factor.value, config: overrides(config.value) }), post, { done }),
      form("Elect preferred leaders", [], () => ({ verb: "elect_preferred" }), post, { done }),
    ];
  }
  function ofTopic(topic, count, post, done) {
    const partitions = numberInput(count + 1), config = node("textarea", { rows: 1, placeholder: "retention.ms=3600000" });
    return [
      form("Set or drop overrides", [labelled("KEY=VALUE, or KEY= to drop it, one a line", config)],
        () => ({ verb: "configure_topic", topic, config: overrides(config.value) }), post, { done }),
      form("Add partitions", [labelled("partitions in all", partitions)], () => ({ verb: "add_partitions", topic, partitions: +partitions.value }), post, { done }),
      form("Delete the topic", [], () => ({ verb: "delete_topic", topic }), post, { confirm: topic, done }),
    ];
  }
  function ofGroup(group, post, done) {
    const to = node("select", {}, [["earliest", "the first message"], ["latest", "the log's end"], ["timestamp", "a time"], ["offset", "an offset"]].map(([value, text]) => node("option", { value }, text)));
    const topic = node("input", { autocomplete: "off", placeholder: "all that it reads" });
    const offset = node("input", { class: "narrow", inputmode: "numeric", pattern: "[0-9]*", value: "0" }), time = node("input", { type: "datetime-local", step: 1 });
    const [offsetField, timeField] = [labelled("offset", offset), labelled("local time", time)];
    const adapt = () => { offsetField.hidden = to.value !== "offset"; timeField.hidden = to.value !== "timestamp"; };
    to.addEventListener("change", adapt);
    adapt();
    const number = () => to.value === "offset" ? +offset.value : to.value === "timestamp" ? new Date(time.value).getTime() || 0 : 0;
    return [form("Set its offsets", [labelled("to", to), offsetField, timeField, labelled("topic", topic)],
      () => ({ verb: "reset_offsets", group, to: to.value, number: number(), topic: topic.value }), post, { confirm: group, done })];
  }
  return { ofCluster, ofTopic, ofGroup };
})();
