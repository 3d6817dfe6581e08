/** Processes that live as long as this one at most, and then clean up, however this one ends. */
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { CommandError, commandEnvironment } from "./command.js";

export interface Keeper {
  readonly pid: number;
  /** Resolves when it has cleaned up. A second call does nothing more. */
  end(): Promise<void>;
}

/**
 * Starts a command that says "ready" in a line when it is, and ends when its standard input does. The other end of that pipe is held by this
 * process alone: when it dies, by whatever signal, the pipe closes. In a session of its own, so that no Ctrl-C reaches it earlier.
 */
export async function startKeeper(command: readonly string[]): Promise<Keeper> {
  const [program = "", ...rest] = command;
  const child = spawn(program, rest, { detached: true, stdio: ["pipe", "pipe", "pipe"], env: commandEnvironment() });
  // Its exit, not the close of its streams: these don't keep this process waiting.
  const over = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  child.stdin.on("error", () => {});
  await ready(child, command);
  // This process may end without it.
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as Socket).unref();
  const { pid } = child;
  if (pid === undefined) throw new CommandError(command, "it has no process id");
  return {
    pid,
    end: async () => {
      child.ref();
      child.stdin.end();
      await over;
    },
  };
}

async function ready(child: ReturnType<typeof spawn>, command: readonly string[]): Promise<void> {
  let printed = "";
  let complaint = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      if (/^ready$/m.test(printed)) resolve();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    child.once("error", (error) => reject(new CommandError(command, error.message)));
    child.once("close", () => reject(new CommandError(command, complaint.trim() || "it ended before it was ready")));
  });
}

/** For a keeper's script: says that it is ready, and waits until its starter is gone. */
export const waitForStarter = "echo ready; cat >/dev/null";
