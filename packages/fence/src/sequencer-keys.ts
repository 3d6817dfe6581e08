/**
 * The cluster's public keys at a guard: fetched when the first sequencer comes, again when one comes of a key that isn't known, and once
 * in a while. No timer runs, and once there are keys nothing waits for a cluster that is down.
 */
import { InvalidArgumentError, KeysUnavailableError } from "./errors.js";
import { described } from "./fence.js";
import { fetchKeys, urlsOf } from "./key-list.js";
import type { KeyList } from "./key-list.js";
import { checkOptionNames } from "./options.js";
import { keysOf, readSequencer } from "./sequencer.js";
import type { PublicKey, VerifiedSequencer } from "./sequencer.js";

/** Where the keys come from: exactly one of the first three. */
export interface SequencerKeysOptions {
  /** "host:port" of the cluster's nodes, as a list or with commas: asked in turn until one answers. */
  readonly endpoints?: string | readonly string[];
  /** Of the list of keys, such as "https://locks.example/v1/keys" behind a proxy. */
  readonly url?: string;
  /** The keys themselves: nothing is ever fetched, and a sequencer of a newer key is refused. */
  readonly keys?: readonly PublicKey[];
  /** At most so often the cluster is asked, whatever is presented. 100 ms to 1 h, default 10,000 ms. */
  readonly refreshMsMin?: number;
  /** Keys older than this are fetched anew, so that a key that the cluster has dropped is dropped here. refreshMsMin to 1 day, default 600,000 ms. */
  readonly maxAgeMs?: number;
  /** For each node. 100 ms to 1 minute, default 3,000 ms. */
  readonly timeoutMs?: number;
}

export interface SequencerKeys {
  /**
   * Whether the cluster signed this text, and what it says.
   * Rejects with SequencerError (malformed, unknown_key, forged), KeysUnavailableError (there are no keys yet, and nobody answers), or
   * InvalidArgumentError for what is no text.
   */
  verify(sequencer: string): Promise<VerifiedSequencer>;
}

const optionNames = ["endpoints", "url", "keys", "refreshMsMin", "maxAgeMs", "timeoutMs"] as const;

/** @throws InvalidArgumentError naming the option. */
export function sequencerKeys(options: SequencerKeysOptions): SequencerKeys {
  checkOptionNames(options, "options", optionNames);
  const { endpoints, url, keys } = options;
  if ([endpoints, url, keys].filter((source) => source !== undefined).length !== 1) {
    throw new InvalidArgumentError("options", "must have one of endpoints, url and keys");
  }
  const refreshMsMin = duration(options, "refreshMsMin", 10_000, 100, 3_600_000);
  const maxAgeMs = duration(options, "maxAgeMs", 600_000, refreshMsMin, 86_400_000);
  const timeoutMs = duration(options, "timeoutMs", 3_000, 100, 60_000);
  if (keys !== undefined) {
    const ring = keysOf(keys, "options.keys");
    return { verify: async (sequencer) => ring.verify(readSequencer(sequencer)) };
  }
  const sources = urlsOf(endpoints, url).map((each) => () => fetchKeys(each, timeoutMs));
  return new RefreshedKeys({ refreshMsMin, maxAgeMs }, { nowMs: () => performance.now(), sources });
}

export interface RefreshedKeysParts {
  /** Monotonic. */
  nowMs(): number;
  /** Each asks one node; they reject as they like. */
  readonly sources: readonly (() => Promise<KeyList>)[];
}

export class RefreshedKeys implements SequencerKeys {
  readonly #refreshMsMin: number;
  readonly #maxAgeMs: number;
  readonly #parts: RefreshedKeysParts;
  #list: KeyList | null = null;
  /** When the list was asked for. */
  #listMs = 0;
  #askedMs = Number.NEGATIVE_INFINITY;
  /** What runs, or the last one. */
  #refresh: Promise<void> = Promise.resolve();
  #isRefreshing = false;
  #lastFailure: unknown = null;

  constructor(options: { readonly refreshMsMin: number; readonly maxAgeMs: number }, parts: RefreshedKeysParts) {
    this.#refreshMsMin = options.refreshMsMin;
    this.#maxAgeMs = options.maxAgeMs;
    this.#parts = parts;
  }

  async verify(text: string): Promise<VerifiedSequencer> {
    const sequencer = readSequencer(text);
    const { keyId } = sequencer;
    if (this.#list?.ring.has(keyId) !== true) await this.#maybeRefresh(keyId);
    // Whoever has the key doesn't wait for a newer list.
    else if (this.#parts.nowMs() - this.#listMs > this.#maxAgeMs) void this.#maybeRefresh(keyId);
    if (this.#list === null) throw new KeysUnavailableError(this.#lastFailure);
    return this.#list.ring.verify(sequencer);
  }

  /** One at a time, and one in refreshMsMin: else whoever makes key ids up would have the cluster asked each time. */
  #maybeRefresh(keyId: string): Promise<void> {
    const nowMs = this.#parts.nowMs();
    if (!this.#isRefreshing && nowMs - this.#askedMs >= this.#refreshMsMin) {
      this.#isRefreshing = true;
      this.#askedMs = nowMs;
      this.#refresh = this.#ask(keyId, nowMs).finally(() => {
        this.#isRefreshing = false;
      });
    }
    return this.#refresh;
  }

  /** A node that lags may not have heard of the newest key: then the next one is asked, and the newest list counts. Never rejects. */
  async #ask(keyId: string, nowMs: number): Promise<void> {
    const before = this.#list?.since ?? 0;
    let newest: KeyList | null = null;
    for (const source of this.#parts.sources) {
      try {
        const list = await source();
        if (newest === null || list.since > newest.since) newest = list;
        if (list.ring.has(keyId) && list.since >= before) break;
      } catch (error) {
        this.#lastFailure = error;
      }
    }
    if (newest === null) return;
    this.#list = newest;
    this.#listMs = nowMs;
  }
}

type DurationName = "refreshMsMin" | "maxAgeMs" | "timeoutMs";

function duration(options: SequencerKeysOptions, name: DurationName, usual: number, min: number, max: number): number {
  const value: unknown = options[name] ?? Math.max(usual, min);
  if (typeof value !== "number" || !(value >= min && value <= max)) {
    throw new InvalidArgumentError(`options.${name}`, `must be from ${min} to ${max} ms, not ${described(value)}`);
  }
  return value;
}
