import { exitCodes } from "./exit-codes.js";
import type { ExitName } from "./exit-codes.js";

/** How a command fails on purpose: a code for programs, a sentence for people, an exit code for scripts. */
export class CommandFailure extends Error {
  /** Stable. */
  readonly code: string;
  readonly exitCode: number;

  constructor(exit: ExitName | number, code: string, message: string) {
    super(message);
    this.name = "CommandFailure";
    this.code = code;
    this.exitCode = typeof exit === "number" ? exit : exitCodes[exit];
  }
}
