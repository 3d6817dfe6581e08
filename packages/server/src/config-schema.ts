/** The shape of the configuration file, in valibot. One problem per value; what values must be to each other is in config-checks.ts. */
import * as v from "valibot";
import { parseAddress } from "./address.js";
import { limitOptions, timingOptions } from "./config-options.js";
import type { NumberOption } from "./config-options.js";
import { logLevels } from "./logger.js";
import type { LogLevel } from "./logger.js";

export interface ConfigProblem {
  /** Where in the file, e.g. "nodes[1].peer"; empty for the file as a whole. */
  readonly path: string;
  readonly problem: string;
}

const shownLengthMax = 60;

/** A value for a person to read, cut short. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}...` : text;
}

export const namePattern: RegExp = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

function nameProblem(value: unknown): string | null {
  if (typeof value === "string" && namePattern.test(value)) return null;
  return `${show(value)} is not a name: 1 to 64 letters, digits, ".", "_" or "-", with a letter or digit at both ends`;
}

function addressProblem(value: unknown): string | null {
  if (typeof value === "string" && parseAddress(value) !== null) return null;
  return `${show(value)} is not an address: "host:port" or "[ipv6]:port", with a port from 1 to 65535`;
}

function originProblem(value: unknown): string | null {
  // An origin has no path: "https://tool.example", as a browser sends it. "null" and "*" would let any page in.
  if (typeof value === "string" && URL.canParse(value)) {
    const url = new URL(value);
    if ((url.protocol === "http:" || url.protocol === "https:") && url.origin === value) return null;
  }
  return `${show(value)} is not an origin such as "https://tool.example" (scheme, host and port, nothing else)`;
}

export function logLevelProblem(value: unknown): string | null {
  if ((logLevels as readonly unknown[]).includes(value)) return null;
  return `${show(value)} is not one of ${logLevels.join(", ")}`;
}

function numberProblem(option: NumberOption, value: unknown): string | null {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return `${show(value)} is not a whole number`;
  if (value < option.min) return `${value} is below ${option.min}`;
  if (value > option.max) return `${value} is above ${option.max}`;
  return null;
}

function unsupportedProblem(): string {
  return "is not supported by this version: remove it";
}

/** A leaf that says what is wrong with the value it got. */
function leaf<Value>(problemWith: (value: unknown) => string | null) {
  return v.custom<Value>(
    (value) => problemWith(value) === null,
    (issue) => problemWith(issue.input) ?? "is wrong",
  );
}

function section<Entries extends v.ObjectEntries>(entries: Entries) {
  return v.object(entries, (issue) =>
    issue.input === undefined ? "is missing" : `${show(issue.input)} is not an object`,
  );
}

function numbers<Name extends string>(options: Readonly<Record<Name, NumberOption>>) {
  const entries: Record<string, v.OptionalSchema<ReturnType<typeof leaf<number>>, undefined>> = {};
  for (const [name, option] of Object.entries<NumberOption>(options)) {
    entries[name] = v.optional(leaf<number>((value) => numberProblem(option, value)));
  }
  return section(entries);
}

const nodeSchema = section({
  id: leaf<string>(nameProblem),
  peer: leaf<string>(addressProblem),
  client: leaf<string>(addressProblem),
  listen: v.optional(
    section({ peer: v.optional(leaf<string>(addressProblem)), client: v.optional(leaf<string>(addressProblem)) }),
  ),
});

const fileSchema = section({
  cluster: leaf<string>(nameProblem),
  nodes: v.array(nodeSchema, (issue) =>
    issue.input === undefined ? "is missing" : `${show(issue.input)} is not a list`,
  ),
  timing: v.optional(numbers(timingOptions)),
  limits: v.optional(numbers(limitOptions)),
  logLevel: v.optional(leaf<LogLevel>(logLevelProblem)),
  origins: v.optional(v.array(leaf<string>(originProblem), (issue) => `${show(issue.input)} is not a list`)),
  tls: v.optional(leaf<undefined>(unsupportedProblem)),
  auth: v.optional(leaf<undefined>(unsupportedProblem)),
});

/** What is wrong with each value by itself. */
export function checkShape(value: unknown): ConfigProblem[] {
  if (Array.isArray(value)) return [{ path: "", problem: `${show(value)} is not an object` }];
  const problems: ConfigProblem[] = [];
  for (const issue of v.safeParse(fileSchema, value).issues ?? []) {
    problems.push({ path: pathFor((issue.path ?? []).map((item) => item.key)), problem: issue.message });
  }
  collectUnknownKeys(fileSchema, value, [], problems);
  return problems;
}

function pathFor(keys: readonly unknown[]): string {
  let path = "";
  for (const key of keys) {
    if (typeof key === "number") path += `[${key}]`;
    else path += path === "" ? String(key) : `.${String(key)}`;
  }
  return path;
}

/** Own keys only: valibot's strictObject takes "constructor" for a known key, and stops at the first unknown one. */
function collectUnknownKeys(
  schema: SchemaNode,
  value: unknown,
  keys: readonly unknown[],
  problems: ConfigProblem[],
): void {
  if (schema.wrapped !== undefined) return collectUnknownKeys(schema.wrapped, value, keys, problems);
  if (schema.item !== undefined && Array.isArray(value)) {
    for (const [index, item] of value.entries()) collectUnknownKeys(schema.item, item, [...keys, index], problems);
  }
  const entries = schema.entries;
  if (entries === undefined || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    // valibot takes a list for an object without keys.
    problems.push({ path: pathFor(keys), problem: `${show(value)} is not an object` });
    return;
  }
  for (const [key, child] of Object.entries(value)) {
    const childSchema = Object.hasOwn(entries, key) ? entries[key] : undefined;
    if (childSchema !== undefined) collectUnknownKeys(childSchema, child, [...keys, key], problems);
    else
      problems.push({
        path: pathFor([...keys, key]),
        problem: `is unknown; known here: ${Object.keys(entries).join(", ")}`,
      });
  }
}

/** What valibot's schemas have in common, as far as the walk needs it. */
interface SchemaNode {
  readonly type: string;
  readonly wrapped?: SchemaNode;
  readonly item?: SchemaNode;
  readonly entries?: Readonly<Record<string, SchemaNode>>;
}
