/**
 * Host names of peers, looked up now and then. A look-up takes a thread of the pool that syncs the disk, and a leader's death must be
 * noticed in milliseconds: so the last answer serves for half a minute, and for as long as no newer one is to be had.
 */
import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup as systemLookup } from "node:dns";
import type { Clock } from "./ports.js";

const freshMs = 30_000;

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;
/** As `lookup` of net.connect. */
export type Lookup = (hostname: string, options: LookupOptions, callback: LookupCallback) => void;
/** As dns.lookup with `all`. */
export type LookupAll = (
  hostname: string,
  options: { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

interface Answer {
  readonly addresses: LookupAddress[];
  readonly atMs: number;
}

export class CachedLookup {
  private readonly answers = new Map<string, Answer>();
  private readonly clock: Clock;
  private readonly lookupAll: LookupAll;

  constructor(clock: Clock, lookupAll: LookupAll = systemLookup) {
    this.clock = clock;
    this.lookupAll = lookupAll;
  }

  readonly lookup: Lookup = (hostname, options, callback) => {
    const known = this.answers.get(hostname);
    if (known !== undefined && this.clock.monotonicMs() - known.atMs < freshMs) {
      process.nextTick(() => answer(known.addresses, options, callback));
      return;
    }
    this.lookupAll(hostname, { all: true }, (error, addresses) => {
      if (error === null && addresses.length > 0) {
        this.answers.set(hostname, { addresses, atMs: this.clock.monotonicMs() });
        answer(addresses, options, callback);
      } else if (known !== undefined) answer(known.addresses, options, callback);
      else callback(error ?? new Error(`${hostname} has no address`), []);
    });
  };

  /** The address doesn't answer: ask anew at the next try. */
  forget(hostname: string): void {
    this.answers.delete(hostname);
  }
}

function answer(addresses: LookupAddress[], options: LookupOptions, callback: LookupCallback): void {
  if (options.all === true) return callback(null, addresses);
  const [first] = addresses;
  if (first === undefined) return callback(new Error("no address"), []);
  callback(null, first.address, first.family);
}
