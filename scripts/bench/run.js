/** Runs the parts that were asked for, one after the other. */
import { otherKinds } from "./peers/peer.js";
import { holdfastKind } from "./peers/holdfast.js";
import { contended } from "./parts/contended.js";
import { cycles } from "./parts/cycles.js";
import { failover } from "./parts/failover.js";
import { flat } from "./parts/flat.js";
import { growth } from "./parts/growth.js";
import { handoff } from "./parts/handoff.js";
import { idle } from "./parts/idle.js";
import { overload } from "./parts/overload.js";
import { profile } from "./parts/profile.js";
import { sessions } from "./parts/sessions.js";
import { CannotRun } from "./cannot-run.js";
import { hasProgram } from "./programs.js";
import { makeWorkspace } from "./workspace.js";

/** @type {Readonly<Record<string, import("./parts/part.js").Part>>} */
const parts = { cycles, contended, handoff, failover, growth, flat, sessions, idle, overload, profile };

/**
 * Rejects when a service or a part fails; with CannotRun when one that was named isn't installed.
 * @param {import("./options.js").Options} options
 * @param {(text: string) => void} say
 * @param {(name: string, result: import("./results.js").Result) => void} onResult Called as each part ends.
 */
export async function run(options, say, onResult) {
  if (process.platform !== "linux" || !hasProgram("setpriv")) {
    throw new CannotRun("it reads CPU times in /proc and starts servers with setpriv (of util-linux): it needs Linux");
  }
  const wanted = otherKinds.filter(({ id }) => options.peers.includes(id));
  const lacking = wanted.flatMap((kind) => {
    const missing = kind.missing();
    return missing === null ? [] : [{ kind, text: `${kind.id} is not installed here: install ${missing}` }];
  });
  if (options.namesPeers && lacking.length > 0) throw new CannotRun(lacking.map(({ text }) => text).join("; "));
  for (const { text } of lacking) say(`skipped: ${text}`);
  const kinds = [holdfastKind, ...wanted.filter((kind) => lacking.every((each) => each.kind !== kind))];
  const context = { folder: makeWorkspace(options.dir), kinds, options, say };
  for (const name of options.parts) onResult(name, await parts[name](context));
}
