import type { FenceRegister, FencedRecord, VersionedRecord } from "../guard.js";
import type { S3Bucket } from "./bucket.js";
import { isRefusal } from "./client.js";
import { etagIn, honouredForm } from "./etag-form.js";
import type { EtagForm } from "./etag-form.js";
import { pauseAfter } from "./pause.js";
import { pointerBody, pointerFrom, recentMax, tellsOf } from "./pointer.js";
import type { Pointer, StoredContent } from "./pointer.js";

/** What stands in the store, or the bytes that are to stand there. */
export type Content = StoredContent | { readonly fresh: Buffer };

/** A pointer as it was read. */
export interface Seen {
  readonly pointer: Pointer;
  readonly etag: string;
}

/** As long as a store's restart takes, with the client's own repetitions; then whether it was stored stays open. */
const attemptsMax = 6;

/**
 * The compare-and-set: the pointer is replaced with If-Match, the first one made with If-None-Match. It is never deleted and no two have one
 * ETag, so a request that comes late finds its condition broken for good.
 *
 * Data is put after the pointer was read that its own pointer replaces, under a name that no other write has. removeGarbage rests on that.
 */
export class PointerRegister implements FenceRegister<Content, Seen> {
  readonly #bucket: S3Bucket;
  readonly #prefixOf: (resource: string) => string;
  readonly #checkPrefix: string;
  #form: Promise<EtagForm> | null = null;

  constructor(bucket: S3Bucket, prefixOf: (resource: string) => string, checkPrefix: string) {
    this.#bucket = bucket;
    this.#prefixOf = prefixOf;
    this.#checkPrefix = checkPrefix;
  }

  async read(resource: string): Promise<VersionedRecord<Content, Seen> | null> {
    const key = this.#pointerKey(resource);
    const found = await this.#bucket.get(key);
    if (found === null) return null;
    const pointer = pointerFrom(found.body, key, resource);
    const { token, writeId, data } = pointer;
    return { record: { token, writeId, value: data }, version: { pointer, etag: found.etag } };
  }

  async compareAndSet(
    resource: string,
    expected: Seen | null,
    record: FencedRecord<Content>,
  ): Promise<boolean | Error> {
    let data: StoredContent | null;
    let form: EtagForm;
    try {
      form = await this.#etagForm();
      data = await this.#put(resource, record);
    } catch (error) {
      if (error instanceof Error) return error;
      throw error;
    }
    const { token, writeId } = record;
    const before = expected?.pointer;
    const recent = before === undefined ? [] : [before.writeId, ...before.recent].slice(0, recentMax);
    const pointer = { resource, token, writeId, number: (before?.number ?? 0) + 1, recent, data };
    const outcome = await this.#replace(expected, pointer, form);
    // Whoever loses leaves nothing, and nobody comes back to what the winner replaced.
    const dead = outcome === true ? before?.data : data;
    const kept = outcome === true ? data : before?.data;
    if (dead && dead.name !== kept?.name) await this.#bucket.discard(this.#dataKey(resource, dead.name));
    return outcome;
  }

  /** The bytes; null when they aren't there (any more). */
  async load(resource: string, content: StoredContent): Promise<Buffer | null> {
    const found = await this.#bucket.get(this.#dataKey(resource, content.name));
    return found === null ? null : Buffer.from(found.body);
  }

  async dataNames(resource: string): Promise<string[]> {
    const prefix = this.#dataKey(resource, "");
    return (await this.#bucket.keysUnder(prefix)).map((key) => key.slice(prefix.length));
  }

  async delete(resource: string, dataName: string): Promise<void> {
    await this.#bucket.delete(this.#dataKey(resource, dataName));
  }

  /**
   * An answer other than yes says little. 412: another was there, or this one itself when the client has sent it twice. 409: another one is
   * at it. 5xx: anything (what loses a race at Ceph's gateway gets 500). No answer: anything. The pointer that is there then tells.
   */
  async #replace(expected: Seen | null, pointer: Pointer, form: EtagForm): Promise<boolean | Error> {
    const { resource, number, writeId } = pointer;
    const condition = expected === null ? { IfNoneMatch: "*" } : { IfMatch: etagIn(form, expected.etag) };
    for (let attempt = 1; ; attempt += 1) {
      let problem: unknown;
      try {
        await this.#bucket.put(this.#pointerKey(resource), pointerBody(pointer), condition);
        return true;
      } catch (error) {
        // A refusal after an attempt of unknown outcome is none of that attempt.
        if (attempt === 1 && isRefusal(error) && error instanceof Error) return error;
        problem = error;
      }
      const found = await this.read(resource).catch(() => {
        throw problem;
      });
      if (found?.version.etag !== expected?.etag) {
        const isStored = found === null ? null : tellsOf(found.version.pointer, number, writeId);
        if (isStored === null) throw problem;
        return isStored;
      }
      // As it was: it may still come, and until it has, the same request does no harm.
      if (attempt >= attemptsMax) throw problem;
      await pauseAfter(attempt);
    }
  }

  async #put(resource: string, { token, writeId, value }: FencedRecord<Content>): Promise<StoredContent | null> {
    if (value === null || !("fresh" in value)) return value;
    // Wide enough for 2^53 - 1, so that a listing shows them in order.
    const name = `${String(token).padStart(16, "0")}-${writeId}`;
    await this.#bucket.putOnly(this.#dataKey(resource, name), value.fresh);
    return { name, bytes: value.fresh.length };
  }

  /** Once found, it stays; a failure is forgotten. */
  #etagForm(): Promise<EtagForm> {
    this.#form ??= honouredForm(this.#bucket, this.#checkPrefix).catch((error: unknown) => {
      this.#form = null;
      throw error;
    });
    return this.#form;
  }

  #pointerKey(resource: string): string {
    return `${this.#prefixOf(resource)}fence`;
  }

  #dataKey(resource: string, name: string): string {
    return `${this.#prefixOf(resource)}data/${name}`;
  }
}
