"use strict";
// The page of a topic's messages: a form, the response of /api/messages, and how bytes are shown.
const messages = (() => {
  const { node, fill } = parts;
  const HEX_MAX = 4096;
  const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;

  function bytesOf(part) {
    const text = atob(part.data), bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
    return bytes;
  }
  function utf8(bytes, isCut) {
    // A character may be cut in two at the end of what is shown.
    for (let tail = 0; tail <= (isCut ? 3 : 0); tail++) {
      try { return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, bytes.length - tail)); } catch { /* not at this length */ }
    }
    return null;
  }
  function json(text) {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return null; }
  }
  function hex(bytes) {
    const lines = [];
    for (let at = 0; at < Math.min(bytes.length, HEX_MAX); at += 16) {
      const row = [...bytes.subarray(at, Math.min(at + 16, HEX_MAX))];
      const digits = row.map(byte => byte.toString(16).padStart(2, "0")).join(" ").padEnd(47);
      lines.push(`${at.toString(16).padStart(6, "0")}  ${digits}  ${row.map(byte => byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".").join("")}`);
    }
    if (bytes.length > HEX_MAX) lines.push(`… ${bytes.length - HEX_MAX} more bytes are here and not shown as hex`);
    return lines.join("\n");
  }
  // How a key or value is shown: {text, kind}, and what it is without breaks of lines (raw). `wanted`: auto, json, utf-8 or hex.
  function shown(part, wanted) {
    if (part === null) return { kind: "null", text: "null" };
    const bytes = bytesOf(part), isCut = part.size > bytes.length;
    const decoded = wanted === "hex" ? null : utf8(bytes, isCut);
    const text = decoded !== null && wanted === "auto" && CONTROL.test(decoded) ? null : decoded;
    if (text === null) return { kind: "hex", text: hex(bytes), raw: null };
    const pretty = wanted === "utf-8" || (wanted === "auto" && !/^\s*[[{]/.test(text)) ? null : json(text);
    return pretty === null ? { kind: "utf-8", text, raw: text } : { kind: "json", text: pretty, raw: text };
  }
  function line(part, wanted) {
    const found = shown(part, wanted);
    if (found.kind === "null") return node("span", { class: "null" }, "null");
    const flat = found.kind === "hex" ? [...bytesOf(part).subarray(0, 40)].map(byte => byte.toString(16).padStart(2, "0")).join(" ") : found.raw.replace(/\s+/g, " ");
    return node("span", { class: "mono" }, flat.slice(0, 300));
  }
  function whole(part, wanted, name) {
    if (part === null) return node("p", { class: "null" }, `${name}: null`);
    const found = shown(part, wanted), kept = bytesOf(part).length;
    const note = kept < part.size ? `; the first ${parts.size(kept)} are shown` : "";
    return [node("p", { class: "dim" }, `${name}: ${parts.size(part.size)} as ${found.kind}${note}`), node("pre", {}, found.text)];
  }
  function row(message, wanted) {
    const detail = node("div");
    const opened = node("details", { ontoggle: () => { if (opened.open) fill(detail, whole(message.key, wanted(), "Key"), whole(message.value, wanted(), "Value")); } },
      node("summary", {}, node("span", {}, `${message.partition} : ${message.offset}`),
        node("span", { class: "dim" }, message.time_ms === null ? "–" : parts.moment(message.time_ms)),
        message.key === null ? node("span", { class: "null" }, "no key") : line(message.key, wanted()),
        message.fault ? node("span", { class: "bad" }, message.fault) : line(message.value, wanted())), detail);
    return node("li", {}, opened);
  }

  // A message as `kafka08 consume --format json` prints it, for `kafka08 produce --format json`. What is shown only
  // in part is said to be.
  function jsonLine(topic, message) {
    const both = [message.key, message.value], texts = both.map(part => part && utf8(bytesOf(part), false));
    const isText = both.every((part, index) => part === null || texts[index] !== null);
    const [key, value] = both.map((part, index) => part && (isText ? texts[index] : part.data));
    const cut = both.some(part => part && part.size > bytesOf(part).length);
    return `${JSON.stringify({ topic, partition: message.partition, offset: message.offset,
      ...(message.time_ms === null ? {} : { timestamp: message.time_ms }), key, value,
      ...(isText ? {} : { encoding: "base64" }), ...(cut ? { cut: true } : {}) })}\n`;
  }
  function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
    node("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  const head = () => node("li", { class: "head" }, ["partition : offset", "time", "key", "value"].map(text => node("span", {}, text)));

  // The page. `ask(path, query)` gives the JSON, or throws an Error with what to tell.
  function page(topic, partitions, ask) {
    const field = (name, label, ...rest) => node("label", {}, label, ...rest);
    const choice = (name, options) => node("select", { name }, options.map(([value, text]) => node("option", { value }, text)));
    const partition = choice("partition", [["", "all"], ...partitions.map(number => [String(number), String(number)])]);
    const start = choice("start", [["latest", "the last ones"], ["earliest", "the first ones"], ["offset", "an offset"], ["time", "a time"]]);
    const offset = node("input", { name: "offset", class: "narrow", inputmode: "numeric", pattern: "[0-9]*", value: "0" });
    const time = node("input", { name: "time", type: "datetime-local", step: 1 });
    const [offsetField, timeField] = [field("offset", "offset", offset), field("time", "local time", time)];
    const key = node("input", { name: "key", class: "narrow" }), text = node("input", { name: "text" });
    const limit = choice("limit", [["20", "20"], ["50", "50"], ["200", "200"]]);
    limit.value = "50";
    const form = choice("form", [["auto", "auto"], ["json", "json"], ["utf-8", "utf-8"], ["hex", "hex"]]);
    const list = node("ol", { class: "messages", "aria-label": `messages of ${topic}` }), told = node("p", { class: "dim", role: "status" });
    const more = node("button", { type: "button", hidden: true }, "Go on from there");
    const save = node("button", { type: "button", hidden: true, onclick: () => download(`${topic}.jsonl`, found.map(message => jsonLine(topic, message)).join("")) }, "Save these as JSON lines");
    let found = [], next = null;
    const adapt = () => { offsetField.hidden = start.value !== "offset"; timeField.hidden = start.value !== "time"; };
    const wanted = () => form.value;
    const draw = () => fill(list, found.length ? head() : null, found.map(message => row(message, wanted)));
    start.addEventListener("change", adapt);
    form.addEventListener("change", draw);

    async function read(position) {
      told.textContent = "Reading…"; told.className = "dim";
      const query = { topic, partition: partition.value, limit: limit.value, key: key.value, text: text.value, ...position };
      try {
        const response = await ask("/api/messages", query);
        found = response.messages; next = response.next;
        draw();
        const faults = Object.entries(response.faults).map(([number, why]) => `partition ${number}: ${why}`);
        const filtered = key.value || text.value;
        const ended = Object.keys(next).length === response.ended.length;
        const order = Object.keys(next).length < 2 ? [] : [response.order === "time" ? "all partitions by time" : "no timestamps, so one partition after the other"];
        told.textContent = [`${parts.counted(found.length, "message")}${filtered ? ` of ${parts.whole(response.scanned)} looked at` : ""}`, ...(found.length ? order : []),
          response.is_cut ? "it stopped after 5 s or 64 MiB: go on from there" : ended ? "the end of the log is reached" : "there are more", ...faults].join("; ") + ".";
        if (faults.length) told.className = "bad";
        more.hidden = !Object.keys(next).length;
        save.hidden = !found.length;
      } catch (error) { told.textContent = error.message; told.className = "bad"; }
    }
    const begin = () => {
      const number = start.value === "offset" ? offset.value || "0" : start.value === "time" ? String(Math.max(0, new Date(time.value).getTime() || 0)) : "0";
      return read({ start: start.value, number });
    };
    more.addEventListener("click", () => read({ start: "at", at: Object.entries(next).map(([number, at]) => `${number}:${at}`).join(",") }));
    const asked = node("form", { class: "ask", onsubmit: event => { event.preventDefault(); begin(); } },
      field("partition", "partition", partition), field("start", "from", start), offsetField, timeField, field("key", "key is", key),
      field("text", "text in key or value", text), field("limit", "at most", limit), field("form", "shown as", form), node("button", {}, "Read"));
    adapt();
    begin();
    return node("div", {}, asked, told, list, more, save);
  }
  return { page, shown, jsonLine };
})();
