/**
 * Runs a table: one row for one command, what comes of it in the lines after the bar. Rows look like
 *
 *     10  s1  1 acquire a,b shared    | s1#1 granted a@10 b@10
 *                                     | hold s1#1 token=10
 *
 * with the entry's index (`?` for a question that applies nothing), the session or `-`, and the command (command-text.ts). Lines that
 * begin with # and empty lines stay as they are. After every row the invariants are checked, and a snapshot is loaded and compared.
 */
import assert from "node:assert/strict";
import { LockMachine } from "../src/index.js";
import type { SessionId } from "../src/index.js";
import { numberOf, parseCommand, sessionOf, splitWords } from "./command-text.js";
import type { Aliases } from "./command-text.js";
import { effectText, lockLines, resumeLines, sessionText } from "./effect-text.js";
import { restored } from "./restored.js";

const commandWidth = 52;

/** The table as it should read. */
export function runTable(text: string): string {
  const run = new TableRun();
  const lines: string[] = [];
  for (const line of text.trimEnd().split("\n")) {
    if (line.startsWith("#") || line.trim() === "") lines.push(line);
    else if (!line.trimStart().startsWith("|")) lines.push(...run.row(line));
  }
  return `${lines.join("\n")}\n`;
}

class TableRun {
  private machine: LockMachine = new LockMachine();
  private readonly aliases: Aliases = new Map();
  private readonly names: Map<SessionId, string> = new Map();

  row(line: string): string[] {
    const [left = ""] = line.split("|");
    const [at = "", who = "", ...words] = left.trim().split(/\s+/);
    const command = words.join(" ");
    const results = at === "?" ? this.ask(who, command) : this.apply(numberOf(at), who, command);
    const head = `${at.padEnd(4)} ${who.padEnd(3)} ${command}`.padEnd(commandWidth);
    return results.map((result, row) => `${row === 0 ? head : "".padEnd(commandWidth)} | ${result}`.trimEnd());
  }

  private apply(index: number, who: string, text: string): string[] {
    const command = parseCommand(who, text, this.aliases);
    const effects = this.machine.apply(index, command);
    for (const effect of effects) {
      if (effect.kind !== "sessionOpened" || !effect.isNew) continue;
      // A name stays with its first session: a later one of the same key is called by its id.
      if (!this.aliases.has(who)) this.aliases.set(who, effect.session);
      if (this.aliases.get(who) === effect.session) this.names.set(effect.session, who);
    }
    this.machine.checkInvariants();
    const copy = restored(this.machine);
    copy.checkInvariants();
    assert.equal(copy.stateHash(), this.machine.stateHash(), `snapshot at ${index}`);
    this.machine = copy;
    const lines = effects.map((effect) => effectText(effect, this.name));
    return lines.length === 0 ? ["nothing"] : lines;
  }

  private ask(who: string, text: string): string[] {
    const { plain, options } = splitWords(text);
    const [verb = "", argument = ""] = plain;
    const { machine, name } = this;
    const number = (option: string, otherwise: number): number => numberOf(options.get(option), otherwise);
    switch (verb) {
      case "show":
        return lockLines(machine.lockView(argument, number("waiters", 10)), name);
      case "list": {
        const { locks, more } = machine.list(
          options.get("prefix") ?? "",
          options.get("after") ?? "",
          number("limit", 10),
        );
        return [...locks.map((lock) => lock.name), more ? "and more" : "no more"];
      }
      case "session":
        return [sessionText(machine.sessionView(sessionOf(who, this.aliases)), name)];
      case "resume":
        return resumeLines(machine.resumeView(sessionOf(who, this.aliases), options.get("key") ?? who), name);
      case "delays":
        return or([...machine.delays()].map((each) => `${each.name} index=${each.index} ms=${each.delayMs}`).sort());
      case "timed":
        return or(
          [...machine.timedHolds()]
            .map((each) => `${name(each.session)}#${each.of}@${each.token} max=${each.maxHoldMs}`)
            .sort(),
        );
      case "reason":
        return [machine.endReason(sessionOf(who, this.aliases)) ?? "unknown"];
      case "keys": {
        const secret = machine.signingKey === null ? [] : [`signs with ${machine.signingKey.seed}`];
        return or([...machine.publicKeys().map((key) => `${key.id} ${key.publicKey} since ${key.since}`), ...secret]);
      }
      case "holding": {
        const session = sessionOf(who, this.aliases);
        const view = machine.holdingView(session, options.get("key") ?? who, number("of", 0), argument);
        return [view === null ? "nothing" : `${view.name} ${view.mode} slot=${view.slot} token=${view.token}`];
      }
      case "token":
        return [`${machine.tokenAt(argument, options.has("slot") ? number("slot", 0) : null)}`];
      case "counts":
        return [
          `sessions=${machine.sessionCount} locks=${machine.lockCount} holds=${machine.holdCount} waiters=${machine.waiterCount}`,
        ];
      default:
        throw new Error(`no such question: ${text}`);
    }
  }

  private readonly name = (session: SessionId): string => this.names.get(session) ?? String(session);
}

function or(lines: string[]): string[] {
  return lines.length === 0 ? ["nothing"] : lines;
}
