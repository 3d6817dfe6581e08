/**
 * A writer that can be killed: writer-process.ts is its other end. Says "ready", waits for a line, then works and says what was
 * acknowledged: the tokens one by one, or for mixed writers the result.
 */
import { once } from "node:events";
import { storeKind } from "./stores.js";
import { bodyUnder, lineUnder, mixedWriters } from "./work.js";
import type { WriterTask } from "./writer-process.js";

const task = JSON.parse(process.argv[2] ?? "") as WriterTask;
const { resource } = task;
const store = await (await storeKind(task.kind)).open(task.address, {});
// Ends with its parent, however that ends.
process.stdin.once("end", () => process.exit(0));
say("ready");
await once(process.stdin, "data");

if (task.work === "mixed") {
  say(JSON.stringify(await mixedWriters(store, resource, task.from ?? 0, task.to ?? 0)));
} else {
  for (let token = 1; ; token += 1) {
    try {
      if (task.work === "write") await store.write({ resource, token }, bodyUnder(token));
      else await store.append({ resource, token }, lineUnder(token));
    } catch (error) {
      // The server was killed. What isn't acknowledged may stand or not.
      say(`over: ${String(error)}`);
      break;
    }
    say(String(token));
  }
}
process.exit(0);

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
