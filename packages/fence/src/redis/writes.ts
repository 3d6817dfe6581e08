import { InvalidArgumentError } from "../errors.js";
import { described, isWellFormed } from "../fence.js";
import { checkedKey } from "./keys.js";

export type RedisArgument = string | number;
/** A command on one key, such as `["RPUSH", "log:42", "line"]`. */
export type RedisWrite = readonly [command: string, key: string, ...args: RedisArgument[]];

interface Shape {
  /** What the key must hold, if it holds anything. */
  readonly type: "string" | "hash" | "list" | "set" | "any";
  readonly fits: (args: readonly string[]) => boolean;
  readonly wants: string;
  /** Done twice, it leaves what it leaves done once. */
  readonly repeatable: boolean;
}

const whole = /^-?\d{1,15}$/;
const some = (args: readonly string[]): boolean => args.length > 0;
const pairs = (args: readonly string[]): boolean => args.length > 0 && args.length % 2 === 0;

/**
 * A script that fails in its middle is not rolled back. So these only: with a key of the right type and these arguments, none can fail.
 */
const shapes: Readonly<Record<string, Shape>> = {
  SET: {
    type: "any",
    fits: ([, px, ms, ...rest]) =>
      rest.length === 0 && (px === undefined || (px === "PX" && /^[1-9]\d{0,14}$/.test(ms ?? ""))),
    wants: "a value, and PX with milliseconds if wanted",
    repeatable: true,
  },
  DEL: { type: "any", fits: (args) => args.length === 0, wants: "one key", repeatable: true },
  HSET: { type: "hash", fits: pairs, wants: "fields and values", repeatable: true },
  HDEL: { type: "hash", fits: some, wants: "fields", repeatable: true },
  RPUSH: { type: "list", fits: some, wants: "values", repeatable: false },
  LPUSH: { type: "list", fits: some, wants: "values", repeatable: false },
  LTRIM: {
    type: "list",
    fits: (args) => args.length === 2 && args.every((each) => whole.test(each)),
    wants: "start and stop",
    repeatable: false,
  },
  SADD: { type: "set", fits: some, wants: "members", repeatable: true },
  SREM: { type: "set", fits: some, wants: "members", repeatable: true },
};

/** Lua unpacks no more than some 8,000 values in one call. */
const argumentsMax = 4_000;

export interface CheckedWrite {
  readonly command: string;
  readonly key: string;
  readonly type: Shape["type"];
  readonly args: readonly string[];
  readonly repeatable: boolean;
}

/** @throws InvalidArgumentError naming `argument` or a part of it. */
export function checkedWrite(write: RedisWrite, argument: string): CheckedWrite {
  if (!Array.isArray(write)) throw new InvalidArgumentError(argument, "must be an array: command, key, arguments");
  const [name, key, ...rest] = write as readonly unknown[];
  const command = typeof name === "string" ? name.toUpperCase() : "";
  const shape = Object.hasOwn(shapes, command) ? shapes[command] : undefined;
  if (shape === undefined) {
    const known = Object.keys(shapes).join(", ");
    throw new InvalidArgumentError(`${argument}[0]`, `must be one of ${known}, not ${described(name)}`);
  }
  const args = rest.map((each, at) => checkedArgument(each, `${argument}[${at + 2}]`));
  const checked = { command, key: checkedKey(key, `${argument}[1]`), type: shape.type, args };
  if (args.length > argumentsMax) {
    throw new InvalidArgumentError(
      argument,
      `has ${args.length} arguments, and at most ${argumentsMax} fit in one command`,
    );
  }
  if ((command === "SET" && args.length === 0) || !shape.fits(args)) {
    throw new InvalidArgumentError(argument, `${command} needs ${shape.wants}`);
  }
  return { ...checked, repeatable: shape.repeatable };
}

/** @throws InvalidArgumentError naming `argument`. */
export function checkedArgument(value: unknown, argument: string): string {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value === "string" && isWellFormed(value)) return value;
  throw new InvalidArgumentError(argument, `must be a well-formed string or a finite number, not ${described(value)}`);
}
