/** Talkers as the processes of a network's parties. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Network, Party } from "../../../src/network/network.js";
import type { Question, State } from "./talker.js";

const script = fileURLToPath(new URL("./talker.js", import.meta.url));

export interface Talker {
  readonly pid: number;
  ask(question: Question): Promise<State>;
  end(): Promise<void>;
}

export function startTalker(network: Network, party: Party): Talker {
  const [program = "", ...rest] = network.wrap(party, [process.execPath, script]);
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const over = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
  });
  return {
    pid: child.pid ?? 0,
    ask: async (question) => {
      child.stdin.write(`${JSON.stringify(question)}\n`);
      const { value, done } = await answers.next();
      if (done === true) throw new Error(`the talker of ${party} has ended`);
      return JSON.parse(value) as State;
    },
    end: async () => {
      child.stdin.end();
      await over;
    },
  };
}
