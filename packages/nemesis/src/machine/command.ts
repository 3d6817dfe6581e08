/** Programs of the system that change the machine: run to their end, with what they said when they failed. */
import { execFile } from "node:child_process";

/** A program of the system is missing or has failed. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly command: readonly string[];

  constructor(command: readonly string[], said: string) {
    super(`${command.join(" ")}: ${said}`);
    this.command = command;
  }
}

/** None of them has to wait for anything: one that takes longer hangs. Generous, for all cores may be busy. */
const commandTimeoutMs = 30_000;

/** Resolves with what the command printed; `input` is its standard input. */
export async function runCommand(command: readonly string[], input = ""): Promise<string> {
  const [program = "", ...rest] = command;
  const options = {
    encoding: "utf8",
    timeout: commandTimeoutMs,
    killSignal: "SIGKILL",
    env: commandEnvironment(),
  } as const;
  return new Promise((resolve, reject) => {
    const child = execFile(program, rest, options, (error, printed, complaint) => {
      if (error === null) resolve(printed);
      else reject(new CommandError(command, complaint.trim() === "" ? error.message : complaint.trim()));
    });
    // One that ends without having read everything says why in its own words.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/** Null when the command succeeds, else what it said: for looking what a machine can do. */
export async function whyNot(command: readonly string[], input = ""): Promise<string | null> {
  try {
    await runCommand(command, input);
    return null;
  } catch (error) {
    return error instanceof CommandError ? error.message : String(error);
  }
}

/** A preloaded library of a run is not for its tools; messages are read by programs. */
export function commandEnvironment(): NodeJS.ProcessEnv {
  const { LD_PRELOAD: _, PATH: path, ...kept } = process.env;
  // The tools that set up networks and disks lie where users without root often don't look.
  return { ...kept, PATH: `${path ?? ""}:/usr/sbin:/sbin`, LC_ALL: "C" };
}
