/** A victim, launched as a node would be. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { MachineFault, Target } from "../../src/machine/machine.js";
import type { RealMachine } from "../../src/machine/real-machine.js";
import type { Sight } from "./victim.js";

const script = fileURLToPath(new URL("./victim.js", import.meta.url));

export interface Victim {
  readonly target: Target;
  /** Lets it write to this file. */
  look(path: string): Promise<Sight>;
  kill(): Promise<void>;
}

export async function startVictim(
  machine: RealMachine,
  party: string,
  directory: string,
  faults: readonly MachineFault[],
): Promise<Victim> {
  const launch = await machine.launch(party, { command: [process.execPath, script], env: {}, directory }, faults);
  const [program = "", ...rest] = launch.command;
  const child = spawn(program, rest, { env: { ...process.env, ...launch.env }, stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const over = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
  });
  return {
    target: { party, pid: child.pid ?? 0, directory: launch.directory },
    look: async (path) => {
      child.stdin.write(`${path}\n`);
      const { value, done } = await answers.next();
      if (done === true) throw new Error("the victim has ended");
      return JSON.parse(value) as Sight;
    },
    kill: async () => {
      child.kill("SIGKILL");
      await over;
    },
  };
}
