/** What a command that failed prints and ends with. */
import { HoldfastError } from "@holdfast/client";
import { CommanderError } from "commander";
import { CommandFailure } from "./command-failure.js";
import { exitCodes } from "./exit-codes.js";
import { json, plain } from "./output.js";

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly exitCode: number;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CommandFailure) return { code: error.code, message: error.message, exitCode: error.exitCode };
  if (error instanceof CommanderError) {
    // Help for a call without a command has been printed already.
    const message = error.code === "commander.help" ? "" : error.message.replace(/^error: /, "");
    return { code: "usage", message, exitCode: error.exitCode === 0 ? 0 : exitCodes.usage };
  }
  if (error instanceof HoldfastError) {
    const exit = error.code === "invalid_argument" ? exitCodes.usage : exitCodes.error;
    return { code: error.code, message: error.message, exitCode: exit };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "internal", message, exitCode: exitCodes.internal };
}

/** One line on stderr; the stack of an error of our own keeps its lines. */
export function failureText(failure: Failure, isJson: boolean): string {
  const { code, message } = failure;
  if (isJson) return json({ error: { code, message } });
  return `holdfast: ${message.split("\n").map(plainLine).join("\n")}\n`;
}

function plainLine(line: string): string {
  const indent = /^\s*/.exec(line)?.[0] ?? "";
  return indent + plain(line.slice(indent.length)).replace(/^"(.*)"$/, "$1");
}
