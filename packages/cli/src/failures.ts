/** What a command that failed prints and ends with. */
import { HoldfastError, InvalidArgumentError } from "@holdfast/client";
import { CommanderError } from "commander";
import { CommandFailure } from "./command-failure.js";
import { formatDuration } from "./durations.js";
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
    return { code: error.code, message: clientText(error), exitCode: exit };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "internal", message, exitCode: exitCodes.internal };
}

/** The client's sentence in the words of the command line. */
export function clientText(error: HoldfastError): string {
  if (error instanceof InvalidArgumentError) return argumentText(error);
  if (error.code !== "unreachable" || !(error.cause instanceof Error)) return error.message;
  const text = `${error.message} (${shortened(error.cause.message)})`;
  return error.message.includes("was reached") ? `${text}; ${unreachableAdvice}` : text;
}

/** "127.0.0.1:7101: connect ECONNREFUSED 127.0.0.1:7101" says all of it twice. */
export function shortened(problems: string): string {
  return problems.replace(/: connect (E[A-Z]+) [^;\s]+/g, ": $1");
}

const unreachableAdvice =
  "start a cluster on this machine with npx holdfast dev, or name the nodes of yours with --endpoints";
const optionNames: Readonly<Record<string, string>> = {
  ttlMs: "--ttl",
  lockDelayMs: "--lock-delay",
  waitMs: "--wait",
  prefix: "PREFIX",
  token: "--token",
  to: "ID",
};

function argumentText({ argument, message }: InvalidArgumentError): string {
  const name = /^names?(\[\d+\])?$/.test(argument) ? "NAME" : optionNames[argument];
  if (name === undefined || !message.startsWith(argument)) return message;
  const problem = message.slice(argument.length);
  if (!argument.endsWith("Ms")) return name + problem;
  return (
    name +
    problem
      .replace("a whole number ", "")
      .replace(/\b\d+\b(?: ms\b)?/g, (ms) => formatDuration(Number.parseInt(ms, 10)))
  );
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
