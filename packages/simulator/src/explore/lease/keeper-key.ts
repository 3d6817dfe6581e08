/**
 * A lease keeper as text: equal texts, equal futures. It walks the whole object, private fields too, so that nothing new in the keeper is
 * overlooked: a number whose meaning is not known here is an error.
 */
import { ttlUnits } from "./units.js";

/** The world outside, or what only the passage of real time would show. */
const outside: ReadonlySet<string> = new Set(["host", "source", "stalledMs"]);
/** On the lease clock: what counts is how far off they are. */
const times: ReadonlySet<string> = new Set(["times", "heardAt"]);
/** Numbers of keepalives: what counts is their age, or less. */
const keepalives: ReadonlySet<string> = new Set(["gathering", "confirmed", "acknowledged", "number"]);
const plain: ReadonlySet<string> = new Set([
  "session",
  "unitMs",
  "credited",
  "applied",
  "eighths",
  "expiriesInFlight",
  "compactsAt",
]);

export interface KeyContext {
  readonly leaseNowMs: number;
  ageOf(number: number): number;
  /** Highest that a round has confirmed, and highest acknowledged, of the one session. */
  readonly confirmed: number;
  readonly acknowledged: number;
  /** No keepalive that comes later is older. */
  readonly comingUnitsMax: number;
}

export function describeKeeper(root: object, context: KeyContext): string {
  return new Walk(context).describe(root, "");
}

/**
 * What was acknowledged is compared with what may still come, and no more. What is not newer than what is confirmed can change nothing,
 * and beyond a TTL an acknowledgement is worth nothing to the client, whatever its number.
 */
function keepaliveFor(number: number, field: string, context: KeyContext): string {
  const { confirmed, acknowledged, comingUnitsMax } = context;
  const age = Math.min(context.ageOf(number), ttlUnits);
  if (field === "acknowledged") return age <= comingUnitsMax ? String(age) : "old";
  const known = field === "confirmed" ? acknowledged : Math.max(acknowledged, confirmed);
  return number <= known ? "=" : String(age);
}

class Walk {
  readonly #met = new Map<object, number>();
  readonly #context: KeyContext;

  constructor(context: KeyContext) {
    this.#context = context;
  }

  describe(value: unknown, field: string): string {
    if (typeof value === "number") return this.#numberFor(value, field);
    if (typeof value !== "object" || value === null) return String(value);
    const before = this.#met.get(value);
    if (before !== undefined) return `#${before}`;
    this.#met.set(value, this.#met.size);
    if (Array.isArray(value) || value instanceof Set) {
      return `[${Array.from(value, (item: unknown) => this.describe(item, field)).join()}]`;
    }
    if (value instanceof Map) {
      const entries = Array.from(value, ([key, item]: [unknown, unknown]) => {
        return `${this.describe(key, "session")}:${this.describe(item, field)}`;
      });
      return `<${entries.join()}>`;
    }
    const fields = Object.entries(value).filter(([name, item]) => !outside.has(name) && typeof item !== "function");
    return `{${fields.map(([name, item]) => this.describe(item, name)).join()}}`;
  }

  #numberFor(value: number, field: string): string {
    if (times.has(field)) return String(value - this.#context.leaseNowMs);
    if (keepalives.has(field)) return keepaliveFor(value, field, this.#context);
    if (plain.has(field)) return String(value);
    throw new Error(`the exploration does not know what the lease keeper's number "${field}" means`);
  }
}
