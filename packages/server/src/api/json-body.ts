/** Bodies of requests: JSON of a bounded size, or the answer that says what is wrong with it. */
import type { IncomingMessage } from "node:http";
import { invalidArgument } from "./answers.js";
import type { Answer } from "./answers.js";
import { apiLimits } from "./limits.js";

/**
 * `done` is called once, unless the client goes before its body is whole. What comes too much is read and dropped, so that the answer reaches
 * who sends first and reads then; the server ends a request that takes its time.
 */
export function readJson(request: IncomingMessage, done: (value: unknown, answer: Answer | null) => void): void {
  const refusal = headProblem(request);
  if (refusal !== null) {
    request.resume();
    return done(undefined, refusal);
  }
  let chunks: Buffer[] = [];
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    const wasFull = bytes > apiLimits.bodyBytesMax;
    bytes += chunk.length;
    if (bytes <= apiLimits.bodyBytesMax) chunks.push(chunk);
    else if (!wasFull) {
      chunks = [];
      done(undefined, tooLong());
    }
  });
  request.once("end", () => {
    if (bytes > apiLimits.bodyBytesMax) return;
    const value = parse(Buffer.concat(chunks));
    if (value === undefined) done(undefined, invalidArgument("body", "is no JSON in UTF-8"));
    else done(value, null);
  });
}

/** A page of another site can send a form or a text without asking, and no JSON: the type is looked at. */
function headProblem({ headers }: IncomingMessage): Answer | null {
  const type = headers["content-type"] ?? "";
  if (!/^application\/json *(?:; *charset="?utf-8"? *)?$/i.test(type)) {
    return invalidArgument("Content-Type", "is not application/json", 415);
  }
  const coding = headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() !== "identity") return invalidArgument("Content-Encoding", "is not identity", 415);
  return Number(headers["content-length"] ?? 0) > apiLimits.bodyBytesMax ? tooLong() : null;
}

function tooLong(): Answer {
  return invalidArgument("body", `is longer than ${apiLimits.bodyBytesMax} bytes`, 413);
}

/** Undefined: it can't be parsed. */
function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}
