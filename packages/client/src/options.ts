/** Every argument is checked at the door: a wrong one is refused by its name, before anything is sent. */
import type { Mode } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import { ClientMetrics } from "./client-metrics.js";
import { InvalidArgumentError } from "./errors.js";
import { checkMeter, checkTracer } from "./open-telemetry.js";
import type { OpenTelemetryMeter, OpenTelemetryTracer } from "./open-telemetry.js";
import type { Logger } from "./ports.js";

export interface ConnectOptions {
  /** "host:port" of any of the cluster's nodes, as a list or with commas. Default: the environment's HOLDFAST_ENDPOINTS. */
  readonly endpoints?: string | readonly string[] | undefined;
  /** The lease, 500 to 3,600,000 ms (a cluster may allow less). Default 10,000. */
  readonly ttlMs?: number | undefined;
  /** How long connect, and later each question that doesn't wait for a lock, may take. Default 10,000 ms. */
  readonly connectTimeoutMs?: number | undefined;
  /** For people who look for the holder of a lock. Default "host:pid". At most 1,024 bytes. */
  readonly info?: string | undefined;
  readonly logger?: Logger | undefined;
  /** As in the options of a hold, for all locks of this client. Default 0. */
  readonly heldLongMs?: number | undefined;
  /** Shared by several clients of a process, so that their metrics are printed once. Default: one of its own. */
  readonly metrics?: ClientMetrics | undefined;
  /** Of OpenTelemetry: `metrics.getMeter("holdfast")`. Default: none. */
  readonly meter?: OpenTelemetryMeter | undefined;
  /** Of OpenTelemetry: `trace.getTracer("holdfast")`. Default: none. */
  readonly tracer?: OpenTelemetryTracer | undefined;
}

export interface HoldOptions {
  /** A session of its own TTL for this lock. Default: the client's ttlMs. */
  readonly ttlMs?: number | undefined;
  /** Default "exclusive". */
  readonly mode?: "exclusive" | "shared" | undefined;
  /** Cancels waiting only: an abort after the grant does nothing. The call rejects at once with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
  /** After a loss (never after a release) the lock stays closed for this long: 0 to 60,000 ms, default 0. */
  readonly lockDelayMs?: number | undefined;
  /** The lock is lost after this time however healthy its holder looks: 500 ms to a week, default 0: no limit. */
  readonly maxHoldMs?: number | undefined;
  /** When `lock.signal` aborts: at the loss (default), or already when a renewal has failed and the lease still runs. */
  readonly stopOn?: "lost" | "jeopardy" | undefined;
  /** "manual": a session of its own, renewed only by `lock.renew()`. Default "auto". */
  readonly renew?: "auto" | "manual" | undefined;
  /** Shown as the holder's. Default: the client's. */
  readonly info?: string | undefined;
  /**
   * A lock held for longer is told of once, by a line of the log and on the diagnostics channel; it stays held. 1 ms to a week, seen within
   * a second; 0: never. Default: the client's, for elections 0.
   */
  readonly heldLongMs?: number | undefined;
}

export interface AcquireOptions extends HoldOptions {
  /** 0 to Infinity, default 30,000. 0 refuses at once what isn't free. */
  readonly waitMs?: number | undefined;
}

export interface RequestOptions extends AcquireOptions {
  /** Hands null to the body when the lock is held or delayed. */
  readonly ifAvailable?: boolean | undefined;
}

export interface ReleaseOptions {
  /** Keeps the names closed for a while after the release: 0 to 60,000 ms, default 0. */
  readonly afterMs?: number | undefined;
}

export interface WatchOptions {
  /** All locks whose names begin with it; with an empty name all there are. Default: the one of that name. */
  readonly prefix?: boolean | undefined;
  /** Ends the watch: the loop throws `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

export type ObserveOptions = Pick<WatchOptions, "signal">;

export interface CloseOptions {
  /** How long held locks may still end by themselves: 0 to Infinity, default 0. */
  readonly drainMs?: number | undefined;
}

/** Connect options, checked and complete. */
export interface ClientOptions {
  readonly endpoints: readonly string[];
  readonly ttlMs: number;
  readonly connectTimeoutMs: number;
  readonly info: string;
  readonly heldLongMs: number;
}

/** Options of one acquire, checked and complete. `names` are sorted, without duplicates. */
export interface AcquireRequest {
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly slots: number;
  /** False: what can't be granted at once is refused. */
  readonly wait: boolean;
  /** How long the caller waits for an answer of any kind. */
  readonly waitMs: number;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  readonly info: string;
  readonly stopOn: "lost" | "jeopardy";
  readonly isManual: boolean;
  readonly heldLongMs: number;
  readonly signal: AbortSignal | null;
}

/** The holder gives up 250 ms early: less than this leaves it nothing. */
const maxHoldMsMin = 500;

const connectOptionNames: ReadonlySet<string> = new Set(
  "endpoints ttlMs connectTimeoutMs info logger heldLongMs metrics meter tracer".split(" "),
);
const tryAcquireOptionNames: ReadonlySet<string> = new Set(
  "ttlMs mode signal lockDelayMs maxHoldMs stopOn renew info heldLongMs".split(" "),
);
const acquireOptionNames: ReadonlySet<string> = new Set([...tryAcquireOptionNames, "waitMs"]);
/** An elected leader is alone. */
const electionOptionNames: ReadonlySet<string> = new Set([...tryAcquireOptionNames].filter((name) => name !== "mode"));
const requestOptionNames: ReadonlySet<string> = new Set([...acquireOptionNames, "ifAvailable"]);

type Call =
  | "connect"
  | "acquire"
  | "tryAcquire"
  | "request"
  | "release"
  | "close"
  | "forceRelease"
  | "rotateKey"
  | "list"
  | "status"
  | "changeMembers"
  | "semaphore"
  | "lead"
  | "elect"
  | "watch"
  | "observe";

const optionNames: Readonly<Record<Call, ReadonlySet<string>>> = {
  connect: connectOptionNames,
  acquire: acquireOptionNames,
  tryAcquire: tryAcquireOptionNames,
  request: requestOptionNames,
  release: new Set(["afterMs"]),
  close: new Set(["drainMs"]),
  forceRelease: new Set(["lockDelayMs", "principal"]),
  rotateKey: new Set(["principal"]),
  list: new Set(["prefix"]),
  status: new Set(["timeoutMs"]),
  changeMembers: new Set(["add", "promote", "remove", "force"]),
  semaphore: new Set(["slots"]),
  lead: electionOptionNames,
  elect: electionOptionNames,
  watch: new Set(["prefix", "signal"]),
  observe: new Set(["signal"]),
};

/** A misspelt option would silently mean its default: it is refused. */
export function checkOptionNames(call: Call, options: object): void {
  if (typeof options !== "object" || options === null) throw new InvalidArgumentError("options", "must be an object");
  for (const name in options) {
    if (!optionNames[call].has(name)) throw new InvalidArgumentError(name, `is no option of ${call}`);
  }
}

export function checkConnectOptions(
  options: ConnectOptions,
  defaults: { readonly endpoints: string; readonly info: string },
): ClientOptions {
  checkOptionNames("connect", options);
  const { ttlMs = 10_000, connectTimeoutMs = 10_000, info = defaults.info, heldLongMs = 0 } = options;
  checkWhole("ttlMs", ttlMs, limits.ttlMsMin, limits.ttlMsMax);
  checkDuration("connectTimeoutMs", connectTimeoutMs, 1, 2 ** 31 - 1);
  checkText("info", info, 0, limits.infoBytesMax);
  checkWhole("heldLongMs", heldLongMs, 0, limits.maxHoldMsMax);
  if (options.metrics !== undefined && !(options.metrics instanceof ClientMetrics)) {
    throw new InvalidArgumentError("metrics", "must be a ClientMetrics");
  }
  if (options.meter !== undefined) checkMeter(options.meter);
  if (options.tracer !== undefined) checkTracer(options.tracer);
  const endpoints = checkEndpoints(options.endpoints ?? defaults.endpoints);
  return { endpoints, ttlMs, connectTimeoutMs, info, heldLongMs };
}

/**
 * As acquire, tryAcquire and request take them. `wait` false is tryAcquire: it waits only for the cluster, not for the lock. `slots`: of a
 * semaphore, else 0.
 */
export function checkAcquire(
  call: "acquire" | "tryAcquire" | "request",
  names: string | readonly string[],
  options: RequestOptions | undefined,
  client: ClientOptions,
  slots = 0,
): AcquireRequest {
  const known = options ?? {};
  if (options !== undefined) checkOptionNames(call, options);
  const { ttlMs = client.ttlMs, mode = "exclusive", signal, lockDelayMs = 0, maxHoldMs = 0, info = "" } = known;
  const { stopOn = "lost", renew = "auto", waitMs = 30_000, ifAvailable = false } = known;
  const { heldLongMs = client.heldLongMs } = known;
  checkWhole("ttlMs", ttlMs, limits.ttlMsMin, limits.ttlMsMax);
  checkOneOf("mode", mode, ["exclusive", "shared"]);
  if (slots > 0 && known.mode !== undefined) throw new InvalidArgumentError("mode", "is no option of a semaphore");
  checkSignal(signal);
  checkWhole("lockDelayMs", lockDelayMs, 0, limits.lockDelayMsMax);
  if (!Object.is(maxHoldMs, 0)) checkWhole("maxHoldMs", maxHoldMs, maxHoldMsMin, limits.maxHoldMsMax);
  checkText("info", info, 0, limits.infoBytesMax);
  checkWhole("heldLongMs", heldLongMs, 0, limits.maxHoldMsMax);
  checkOneOf("stopOn", stopOn, ["lost", "jeopardy"]);
  checkOneOf("renew", renew, ["auto", "manual"]);
  checkDuration("waitMs", waitMs, 0, Number.POSITIVE_INFINITY);
  if (typeof ifAvailable !== "boolean") throw new InvalidArgumentError("ifAvailable", "must be true or false");
  const wait = call !== "tryAcquire" && !ifAvailable && waitMs > 0;
  return {
    names: checkNames(names),
    mode: slots > 0 ? "slot" : mode,
    slots,
    wait,
    waitMs: wait ? waitMs : client.connectTimeoutMs,
    ttlMs,
    lockDelayMs,
    maxHoldMs,
    info,
    stopOn,
    isManual: renew === "manual",
    heldLongMs,
    signal: signal ?? null,
  };
}

export function checkName(argument: string, name: unknown): asserts name is string {
  checkText(argument, name, 1, limits.nameBytesMax);
}

/** A whole number from `min` to `max`. -0 is none: the wire would lose its sign. */
export function checkWhole(argument: string, value: unknown, min: number, max: number): asserts value is number {
  if (typeof value !== "number") throw new InvalidArgumentError(argument, `must be a number, is ${kindOf(value)}`);
  if (Number.isInteger(value) && value >= min && value <= max && !Object.is(value, -0)) return;
  throw new InvalidArgumentError(argument, `must be a whole number from ${min} to ${max}, is ${value}`);
}

/** Any number from `min` to `max`, also Infinity where that is the maximum. */
export function checkDuration(argument: string, value: unknown, min: number, max: number): asserts value is number {
  if (typeof value !== "number") throw new InvalidArgumentError(argument, `must be a number, is ${kindOf(value)}`);
  if (value >= min && value <= max) return;
  throw new InvalidArgumentError(argument, `must be from ${min} to ${max}, is ${value}`);
}

/** Well-formed, without control characters, with `min` to `max` bytes of UTF-8: what the wire takes. */
export function checkText(argument: string, value: unknown, min: number, max: number): asserts value is string {
  if (typeof value !== "string") throw new InvalidArgumentError(argument, `must be a string, is ${kindOf(value)}`);
  if (value.length < min) throw new InvalidArgumentError(argument, "must not be empty");
  // Three bytes of UTF-8 a code unit at most: a short text needs no count.
  if (value.length * 3 > max && (value.length > max || new TextEncoder().encode(value).length > max)) {
    throw new InvalidArgumentError(argument, `must have at most ${max} bytes`);
  }
  if (/\p{Cc}/u.test(value)) throw new InvalidArgumentError(argument, "must not contain a control character");
  if (/\p{Surrogate}/u.test(value)) throw new InvalidArgumentError(argument, "must not contain a lone surrogate");
  if (value.startsWith("\ufeff")) throw new InvalidArgumentError(argument, "must not begin with a byte order mark");
}

function checkOneOf(argument: string, value: unknown, values: readonly string[]): void {
  if (typeof value === "string" && values.includes(value)) return;
  throw new InvalidArgumentError(argument, `must be ${values.map((one) => JSON.stringify(one)).join(" or ")}`);
}

export function checkSignal(signal: unknown): void {
  if (signal === undefined) return;
  const isSignal = typeof signal === "object" && signal !== null && "aborted" in signal && "addEventListener" in signal;
  if (!isSignal) throw new InvalidArgumentError("signal", `must be an AbortSignal, is ${kindOf(signal)}`);
}

/** Sorted by code unit and without duplicates, so that every client asks in one order. */
function checkNames(names: unknown): readonly string[] {
  if (typeof names === "string") {
    checkName("name", names);
    return [names];
  }
  if (!Array.isArray(names)) throw new InvalidArgumentError("name", `must be a string or a list, is ${kindOf(names)}`);
  if (names.length === 0) throw new InvalidArgumentError("names", "must not be empty");
  if (names.length > limits.namesMax) {
    throw new InvalidArgumentError("names", `must be at most ${limits.namesMax}, are ${names.length}`);
  }
  // Array.from, unlike map, doesn't pass over holes.
  const checked = Array.from(names, (name: unknown, index) => {
    checkName(`names[${index}]`, name);
    return name;
  });
  return [...new Set(checked)].sort();
}

const endpointPattern = /^(?:ws:\/\/)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):([0-9]{1,5})\/?$/;

function checkEndpoints(endpoints: unknown): readonly string[] {
  const list: unknown = typeof endpoints === "string" ? endpoints.split(",").map((one) => one.trim()) : endpoints;
  if (!Array.isArray(list))
    throw new InvalidArgumentError("endpoints", `must be a string or a list, is ${kindOf(list)}`);
  if (list.length === 0 || list.join("") === "") {
    throw new InvalidArgumentError("endpoints", "must name at least one node (or set HOLDFAST_ENDPOINTS)");
  }
  const checked = list.map((endpoint: unknown, index) => {
    const match = typeof endpoint === "string" ? endpointPattern.exec(endpoint) : null;
    const port = Number(match?.[2]);
    // "256.1.1.1" is no address, and no name either.
    if (match === null || port < 1 || port > 65_535 || !URL.canParse(`ws://${match[1]}:${port}`)) {
      throw new InvalidArgumentError(`endpoints[${index}]`, 'must be "host:port"');
    }
    return `${match[1]}:${port}`;
  });
  return [...new Set(checked)];
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value;
}
