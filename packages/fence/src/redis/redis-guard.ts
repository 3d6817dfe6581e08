import { IncompatibleResourceError, InvalidArgumentError } from "../errors.js";
import { described } from "../fence.js";
import type { FenceSource } from "../fence.js";
import { namedFence, namedFences } from "../guarded.js";
import type { Guarded } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { evalOf, runScript } from "./client.js";
import type { RedisClient, RedisEval } from "./client.js";
import { checkedKey, fenceKey, hashTagOf } from "./keys.js";
import { readScript, writeScript } from "./scripts.js";
import { checkedArgument, checkedWrite } from "./writes.js";
import type { CheckedWrite, RedisArgument, RedisWrite } from "./writes.js";

export interface RedisGuardOptions extends ReportingOptions {
  /** Before the names of the fence keys. Default `holdfast:fence:`. All who write a resource must use the same. */
  readonly prefix?: string;
}

/**
 * Guards keys by a fence key per resource, which lies in the data's hash slot: `holdfast:fence:{tag}:resource`. Every method is one
 * script. It refuses a token below the resource's highest with StaleTokenError, having changed nothing, and leaves the fence at the
 * token; an equal token is accepted again. The fence key has no expiry and outlives the data. Rejects with UnknownOutcomeError when the
 * connection was lost meanwhile; what the server says else comes as it is.
 */
export interface RedisGuard {
  /** The value of a string, or null. The fence is raised before anybody else can write. */
  get(lock: FenceSource, key: string): Promise<string | null>;
  /** Replaces whatever the key holds; with `expireMs` the data goes after that time, the fence stays. */
  set(lock: FenceSource, key: string, value: RedisArgument, options?: { readonly expireMs?: number }): Promise<void>;
  /** All fields of a hash; without prototype, and empty when there is none. */
  getFields(lock: FenceSource, key: string): Promise<Record<string, string>>;
  setFields(lock: FenceSource, key: string, fields: Readonly<Record<string, RedisArgument>>): Promise<void>;
  deleteFields(lock: FenceSource, key: string, fields: readonly string[]): Promise<void>;
  /** Elements of a list, from `start` to `stop` with both ends; negative ones count from the end. Default: all. */
  range(lock: FenceSource, key: string, start?: number, stop?: number): Promise<string[]>;
  /** Adds to the end of a list; resolves with its length. */
  append(lock: FenceSource, key: string, values: readonly RedisArgument[]): Promise<number>;
  delete(lock: FenceSource, key: string): Promise<void>;
  /**
   * Several writes, several resources, in one step: all keys must lie in one hash slot, by a common {hash tag}. Resolves with the
   * server's answers.
   */
  write(locks: FenceSource | readonly FenceSource[], writes: readonly RedisWrite[]): Promise<unknown[]>;
}

/** @throws InvalidArgumentError naming the option. */
export function redisGuard(client: RedisClient, options: RedisGuardOptions = {}): RedisGuard {
  return new ScriptGuard(evalOf(client), options);
}

class ScriptGuard implements RedisGuard {
  readonly #eval: RedisEval;
  readonly #prefix: string;
  readonly #reporter: StaleReporter;

  constructor(run: RedisEval, options: RedisGuardOptions) {
    checkOptionNames(options, "options", ["prefix", ...reportingOptionNames]);
    this.#prefix = checkedKey(options.prefix ?? "holdfast:fence:", "options.prefix");
    // The first pair of braces in the fence key must be the data's hash tag.
    if (/[{}]/.test(this.#prefix)) throw new InvalidArgumentError("options.prefix", "must not contain { or }");
    this.#eval = run;
    this.#reporter = new StaleReporter("redis", options);
  }

  async get(lock: FenceSource, key: string): Promise<string | null> {
    const value = await this.#read(lock, key, ["GET"]);
    return value === null || value === undefined ? null : textOf(value);
  }

  async set(
    lock: FenceSource,
    key: string,
    value: RedisArgument,
    options: { readonly expireMs?: number } = {},
  ): Promise<void> {
    checkOptionNames(options, "options", ["expireMs"]);
    const { expireMs } = options;
    if (expireMs !== undefined && (!Number.isSafeInteger(expireMs) || expireMs < 1 || expireMs > expireMsMax)) {
      throw new InvalidArgumentError("options.expireMs", `must be a whole number from 1 to ${expireMsMax}`);
    }
    const checked = checkedArgument(value, "value");
    await this.write(lock, [expireMs === undefined ? ["SET", key, checked] : ["SET", key, checked, "PX", expireMs]]);
  }

  async getFields(lock: FenceSource, key: string): Promise<Record<string, string>> {
    const flat = (await this.#read(lock, key, ["HGETALL"])) as unknown[];
    const fields = Object.create(null) as Record<string, string>;
    for (let at = 0; at + 1 < flat.length; at += 2) fields[textOf(flat[at])] = textOf(flat[at + 1]);
    return fields;
  }

  async setFields(lock: FenceSource, key: string, fields: Readonly<Record<string, RedisArgument>>): Promise<void> {
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      throw new InvalidArgumentError("fields", "must be an object");
    }
    const entries = Object.entries(fields);
    if (entries.length === 0) throw new InvalidArgumentError("fields", "names no field");
    const args = entries.flatMap(([name, value]) => [name, checkedArgument(value, `fields.${name}`)]);
    await this.write(lock, [["HSET", key, ...args]]);
  }

  async deleteFields(lock: FenceSource, key: string, fields: readonly string[]): Promise<void> {
    await this.write(lock, [["HDEL", key, ...checkedList(fields, "fields")]]);
  }

  async range(lock: FenceSource, key: string, start: number = 0, stop: number = -1): Promise<string[]> {
    for (const [argument, value] of Object.entries({ start, stop })) {
      if (!Number.isSafeInteger(value)) throw new InvalidArgumentError(argument, "must be a whole number");
    }
    const values = (await this.#read(lock, key, ["LRANGE", String(start), String(stop)])) as unknown[];
    return values.map(textOf);
  }

  async append(lock: FenceSource, key: string, values: readonly RedisArgument[]): Promise<number> {
    const [length] = await this.write(lock, [["RPUSH", key, ...checkedList(values, "values")]]);
    return Number(length);
  }

  async delete(lock: FenceSource, key: string): Promise<void> {
    await this.write(lock, [["DEL", key]]);
  }

  async write(locks: FenceSource | readonly FenceSource[], writes: readonly RedisWrite[]): Promise<unknown[]> {
    const fences = namedFences(locks);
    if (!Array.isArray(writes) || writes.length === 0)
      throw new InvalidArgumentError("writes", "must be a list of writes");
    if (writes.length > writesMax) throw new InvalidArgumentError("writes", `has more than ${writesMax} writes`);
    const isSingle = writes.length === 1;
    const checked = writes.map((each, at) => checkedWrite(each as RedisWrite, `writes[${at}]`));
    const tags = checked.map(({ key }, at) => this.#tagOf(key, isSingle ? "key" : `writes[${at}][1]`));
    const tag = tags[0] ?? "";
    const stranger = tags.findIndex((each) => each !== tag);
    if (stranger > 0) {
      throw new InvalidArgumentError(
        `writes[${stranger}][1]`,
        `has another {hash tag} than writes[0]: they can't be one step`,
      );
    }
    const resource = fences.map((fence) => fence.resource).join(", ");
    const keys = [
      ...fences.map((fence) => fenceKey(this.#prefix, tag, fence.resource)),
      ...checked.map(({ key }) => key),
    ];
    const args = [...counted(fences.map(({ token }) => String(token))), ...writeArguments(checked)];
    const retryable = checked.every(({ repeatable }) => repeatable);
    const answer = await runScript(this.#eval, resource, { script: writeScript, keys, args, retryable });
    return this.#accepted(answer, fences, checked);
  }

  async #read(lock: FenceSource, key: string, command: readonly string[]): Promise<unknown> {
    const fence = namedFence(lock);
    const tag = this.#tagOf(checkedKey(key, "key"), "key");
    const keys = [fenceKey(this.#prefix, tag, fence.resource), key];
    const args = [String(fence.token), ...command];
    const answer = await runScript(this.#eval, fence.resource, { script: readScript, keys, args, retryable: true });
    return this.#accepted(answer, [fence], [])[0];
  }

  #tagOf(key: string, argument: string): string {
    if (key.startsWith(this.#prefix))
      throw new InvalidArgumentError(argument, "is the name of a fence, which only the guard writes");
    return hashTagOf(key, argument);
  }

  /** What follows "ok". */
  #accepted(answer: unknown, fences: readonly Guarded[], writes: readonly CheckedWrite[]): unknown[] {
    if (!Array.isArray(answer)) throw new InvalidArgumentError("client", "gave an answer that isn't the script's");
    const [kind, which, detail] = answer as readonly unknown[];
    if (String(kind) === "ok") return answer.slice(1) as unknown[];
    if (String(kind) === "type") {
      const key = writes[Number(which) - 1]?.key ?? "";
      throw new IncompatibleResourceError(key, `${key} holds a ${String(detail)}: nothing was changed`);
    }
    const fence = fences[Number(which) - 1];
    if (fence === undefined) throw new InvalidArgumentError("client", "gave an answer that isn't the script's");
    const highest = String(kind) === "stale" ? Number(detail) : Number.NaN;
    if (Number.isSafeInteger(highest)) throw this.#reporter.refusal(fence, highest);
    throw new IncompatibleResourceError(fence.resource, `the fence key of ${fence.resource} holds no token`);
  }
}

/** Clients can be set up to give text as bytes. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  throw new InvalidArgumentError("client", `gave ${described(value)} where the server has text`);
}

/** Redis adds it to the time of day, in 64 bits. */
const expireMsMax = 999_999_999_999_999;
/** One script keeps everybody else waiting. */
const writesMax = 1_000;

function counted(values: readonly string[]): string[] {
  return [String(values.length), ...values];
}

function writeArguments(writes: readonly CheckedWrite[]): string[] {
  const each = writes.flatMap(({ command, type, args }) => [command, type, ...counted(args)]);
  return [String(writes.length), ...each];
}

function checkedList<T extends RedisArgument>(values: readonly T[], argument: string): readonly T[] {
  if (!Array.isArray(values) || values.length === 0)
    throw new InvalidArgumentError(argument, "must be a list that isn't empty");
  for (const [at, value] of values.entries()) checkedArgument(value, `${argument}[${at}]`);
  return values;
}
