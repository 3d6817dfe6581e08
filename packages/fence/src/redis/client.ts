import { InvalidArgumentError, UnknownOutcomeError } from "../errors.js";

/** The `redis` package: a client, a pool or a cluster. */
export interface NodeRedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** `ioredis`: a client or a cluster. What has `call` is taken for one. */
export interface IoredisClient {
  eval(script: string, keysCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
}

/** Any other client: runs EVAL on the primary, once. */
export type RedisEval = (script: string, keys: string[], args: string[]) => Promise<unknown>;

export type RedisClient = NodeRedisClient | IoredisClient | RedisEval;

/** @throws InvalidArgumentError naming `client`. */
export function evalOf(client: RedisClient): RedisEval {
  if (typeof client === "function") return client;
  if (typeof client !== "object" || client === null || typeof client.eval !== "function") {
    throw new InvalidArgumentError("client", "must be a client of redis or ioredis, or a function that runs a script");
  }
  if ("call" in client && typeof client.call === "function") {
    return (script, keys, args) => client.eval(script, keys.length, ...keys, ...args);
  }
  return (script, keys, args) => (client as NodeRedisClient).eval(script, { keys, arguments: args });
}

/**
 * Runs a script that leaves nothing half done: what the server refuses had no effect. Everything else that goes wrong (a lost
 * connection, a timeout of the client's) leaves open whether it ran.
 */
export async function runScript(
  run: RedisEval,
  resource: string,
  call: { readonly script: string; readonly keys: string[]; readonly args: string[]; readonly retryable: boolean },
): Promise<unknown> {
  try {
    return await run(call.script, call.keys, call.args);
  } catch (error) {
    if (isAnswerOfServer(error)) throw error;
    throw new UnknownOutcomeError(resource, null, error, call.retryable);
  }
}

/** The classes of an error reply in `redis` (ErrorReply and its kin) and `ioredis` (ReplyError). */
const answers = new Set(["ErrorReply", "SimpleError", "BlobError", "ReplyError"]);

function isAnswerOfServer(error: unknown): boolean {
  for (let each: unknown = error; each instanceof Error; each = Object.getPrototypeOf(each)) {
    if (answers.has(each.constructor.name) || answers.has(each.name)) return true;
  }
  return false;
}
