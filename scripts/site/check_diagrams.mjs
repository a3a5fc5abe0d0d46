// node check_diagrams.mjs LIBRARY PAGE...: parses every diagram of the pages; exits 1 and names those
// that the browser would not draw.
import fs from "node:fs";
import vm from "node:vm";

const [library, ...pages] = process.argv.slice(2);
globalThis.window = globalThis;
// The library cleans text by a document's parser. Here is none, and nothing is drawn.
Function.prototype.addHook = () => {};
Function.prototype.sanitize = (text) => text;
vm.runInThisContext(fs.readFileSync(library, "utf8"));

for (const page of pages) {
  const text = fs.readFileSync(page, "utf8");
  for (const match of text.matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)) {
    try {
      await globalThis.mermaid.parse(match[1]);
    } catch (error) {
      const line = text.slice(0, match.index).split("\n").length;
      console.error(`${page}:${line}: a diagram cannot be drawn: ${error.message}`);
      process.exitCode = 1;
    }
  }
}
