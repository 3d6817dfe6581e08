/** What the values of the configuration must be to each other. Each check runs when its own values are right by themselves. */
import { limits } from "@holdfast/wire";
import { limitOptions, timingOptions } from "./config-options.js";
import type { NumberOption } from "./config-options.js";
import type { ConfigProblem } from "./config-schema.js";

/** Bytes that an entry costs beside its payload, and that an append costs beside its entries; both from above. */
const entryOverheadBytes = 32;
const appendOverheadBytes = 64;

/** The shortest TTL that leaves room for an election and to hear of it. */
function ttlFloorMs(electionTimeoutMs: number): number {
  return 3 * electionTimeoutMs + 500;
}

/** A number from the file, or its default; null when it (or what its default rests on) is wrong by itself. */
export type NumberLookup = (option: NumberOption) => number | null;

export function numberLookup(file: unknown, problems: readonly ConfigProblem[]): NumberLookup {
  const wrongPaths = problems.map((problem) => problem.path);
  const lookup: NumberLookup = (option) => {
    if (wrongPaths.some((path) => path === "" || option.path === path || option.path.startsWith(`${path}.`)))
      return null;
    const value = valueAt(file, option.path.split("."));
    return typeof value === "number" ? value : defaultFor(option, lookup);
  };
  return lookup;
}

function defaultFor(option: NumberOption, lookup: NumberLookup): number | null {
  if (option.path === timingOptions.diskStallMs.path || option.path === timingOptions.ttlMsMin.path) {
    const electionTimeoutMs = lookup(timingOptions.electionTimeoutMs);
    if (electionTimeoutMs === null) return null;
    const floor =
      option.path === timingOptions.diskStallMs.path ? 2 * electionTimeoutMs : ttlFloorMs(electionTimeoutMs);
    return Math.max(option.defaultValue, floor);
  }
  return option.defaultValue;
}

function valueAt(value: unknown, keys: readonly string[]): unknown {
  let at: unknown = value;
  for (const key of keys) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[key];
  }
  return at;
}

interface NumberRule {
  readonly left: NumberOption;
  readonly right: NumberOption;
  /** The problem, or null. */
  check(left: number, right: number): string | null;
}

const { heartbeatMs, electionTimeoutMs, diskStallMs, ttlMsMin, ttlMsMax } = timingOptions;

/** Each with its reason in docs/configuration.md. */
const numberRules: readonly NumberRule[] = [
  {
    left: heartbeatMs,
    right: electionTimeoutMs,
    // One lost heartbeat, or two late ones, must not cost an election.
    check: (beat, timeout) =>
      3 * beat <= timeout ? null : `3 x ${beat} is above timing.electionTimeoutMs (${timeout})`,
  },
  {
    left: diskStallMs,
    right: electionTimeoutMs,
    // A disk that is slower than an election for a moment is no reason for one.
    check: (stall, timeout) => (stall >= timeout ? null : `${stall} is below timing.electionTimeoutMs (${timeout})`),
  },
  {
    left: ttlMsMin,
    right: electionTimeoutMs,
    check: (ttl, timeout) =>
      ttl >= ttlFloorMs(timeout) ? null : `${ttl} is below 3 x timing.electionTimeoutMs + 500 (${ttlFloorMs(timeout)})`,
  },
  {
    left: ttlMsMax,
    right: ttlMsMin,
    check: (max, min) => (max >= min ? null : `${max} is below timing.ttlMsMin (${min})`),
  },
  {
    left: limitOptions.uncommittedBytesMax,
    right: limitOptions.appendBytesMax,
    check: (uncommitted, batch) =>
      uncommitted >= batch
        ? null
        : `${uncommitted} is below limits.appendBytesMax (${batch}): no batch would ever be full`,
  },
  {
    left: limitOptions.clientBufferedBytesSlow,
    right: limitOptions.clientBufferedBytesMax,
    check: (slow, max) => (slow < max ? null : `${slow} is not below limits.clientBufferedBytesMax (${max})`),
  },
];

export function crossCheckNumbers(lookup: NumberLookup): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  for (const rule of numberRules) {
    const left = lookup(rule.left);
    const right = lookup(rule.right);
    const problem = left === null || right === null ? null : rule.check(left, right);
    if (problem !== null) problems.push({ path: rule.left.path, problem });
  }
  return [...problems, ...frameChecks(lookup)];
}

function frameChecks(lookup: NumberLookup): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const bytes = lookup(limitOptions.appendBytesMax);
  const entries = lookup(limitOptions.appendEntriesMax);
  const inFlight = lookup(limitOptions.appendsInFlightMax);
  const buffer = lookup(limitOptions.peerBufferedBytesMax);
  if (bytes === null) return problems;
  if (entries !== null) {
    const frameBytes = bytes + entries * entryOverheadBytes + appendOverheadBytes;
    if (frameBytes > limits.peerFrameBytesMax) {
      const problem = `a full batch takes ${frameBytes} bytes with its ${entries} entries, and a frame ${limits.peerFrameBytesMax}`;
      problems.push({ path: limitOptions.appendBytesMax.path, problem });
    }
  }
  // A full window that doesn't fit would reset its own link again and again.
  if (inFlight !== null && buffer !== null && inFlight * bytes > buffer) {
    const problem = `${buffer} is below limits.appendsInFlightMax x limits.appendBytesMax (${inFlight * bytes})`;
    problems.push({ path: limitOptions.peerBufferedBytesMax.path, problem });
  }
  return problems;
}

/** Ids, counts and addresses over all nodes. Values that are wrong by themselves are skipped. */
export function crossCheckNodes(file: unknown, problems: readonly ConfigProblem[]): ConfigProblem[] {
  const found: ConfigProblem[] = [];
  const nodes = valueAt(file, ["nodes"]);
  if (!Array.isArray(nodes)) return found;
  if (![1, 3, 5].includes(nodes.length)) {
    found.push({ path: "nodes", problem: `has ${nodes.length} nodes: a cluster has 1, 3 or 5` });
  }
  const wrong = new Set(problems.map((problem) => problem.path));
  const ids = new Map<string, string>();
  const addresses = new Map<string, string>();
  for (const index of nodes.keys()) {
    const at = (name: string): string | null => {
      const path = `nodes[${index}].${name}`;
      const value = valueAt(nodes[index], name.split("."));
      return wrong.has(path) || typeof value !== "string" ? null : value;
    };
    checkUnique(ids, at("id"), `nodes[${index}].id`, found);
    checkUnique(addresses, at("peer")?.toLowerCase() ?? null, `nodes[${index}].peer`, found);
    checkUnique(addresses, at("client")?.toLowerCase() ?? null, `nodes[${index}].client`, found);
    // Other nodes may listen on the same words on machines of their own ("0.0.0.0:7201"); one node's two listeners may not.
    const listenPeer = at("listen.peer") ?? at("peer");
    if (listenPeer !== null && at("listen.client") === listenPeer) {
      found.push({ path: `nodes[${index}].listen.client`, problem: `${listenPeer} is this node's peer listener too` });
    }
  }
  return found;
}

function checkUnique(seen: Map<string, string>, value: string | null, path: string, found: ConfigProblem[]): void {
  if (value === null) return;
  const earlier = seen.get(value);
  if (earlier !== undefined) found.push({ path, problem: `${value} is ${earlier} too` });
  else seen.set(value, path);
}
