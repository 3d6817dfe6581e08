/**
 * A writer that can be killed: writer-process.ts is its other end. Says "ready", waits for a line, then works and says what was
 * acknowledged: the tokens one by one, or for mixed writers the result.
 */
import { once } from "node:events";
import { StaleTokenError, UnknownOutcomeError } from "@holdfast/fence";
import type { NamedFence } from "./guarded-store.js";
import { storeKind } from "./stores.js";
import { bodyUnder, lineUnder, mixedWriters, newLines, severalOf } from "./work.js";
import type { WriterTask } from "./writer-process.js";

const task = JSON.parse(process.argv[2] ?? "") as WriterTask;
const { resource } = task;
const store = await (await storeKind(task.kind)).open(task.address, {});
// Ends with its parent, however that ends.
process.stdin.once("end", () => process.exit(0));
say("ready");
await once(process.stdin, "data");

switch (task.work) {
  case "mixed":
    say(JSON.stringify(await mixedWriters(store, resource, task.from ?? 0, task.to ?? 0)));
    break;
  case "old-holder":
    say(await writeUntilRefused());
    break;
  case "successor":
    for (const line of newLines) await store.append({ resource, token: 11 }, line);
    break;
  default:
    say(await writeOn(task.work));
}
process.exit(0);

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function severalUnder(token: number): NamedFence[] {
  return severalOf(resource).map((each) => ({ resource: each, token }));
}

/** Token after token. When the server is killed, what isn't acknowledged may stand or not. */
async function writeOn(work: "write" | "append" | "write-all"): Promise<string> {
  for (let token = 1; ; token += 1) {
    try {
      if (work === "write") await store.write({ resource, token }, bodyUnder(token));
      else if (work === "append") await store.append({ resource, token }, lineUnder(token));
      else await store.writeAll(severalUnder(token), bodyUnder(token));
    } catch (error) {
      return `over: ${String(error)}`;
    }
    say(String(token));
  }
}

/** As a holder does that never looks at its lease. A line whose answer is lost may stand or not, and isn't written again. */
async function writeUntilRefused(): Promise<string> {
  for (let line = 1; ; line += 1) {
    try {
      await store.append({ resource, token: 10 }, `old ${line}`);
      say(String(line));
    } catch (error) {
      if (error instanceof StaleTokenError) return `refused: ${error.presented} below ${error.highest}`;
      if (!(error instanceof UnknownOutcomeError)) throw error;
      say("unknown");
    }
  }
}
