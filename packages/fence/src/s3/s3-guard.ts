import { randomUUID } from "node:crypto";

import { contentBytes } from "../content.js";
import type { ContentGuard } from "../content.js";
import { IncompatibleResourceError, InvalidArgumentError } from "../errors.js";
import type { FenceSource } from "../fence.js";
import { isWellFormed } from "../fence.js";
import { Guard } from "../guard.js";
import { checkResource, namedFence } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { plainName } from "../plain-name.js";
import { reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { S3Bucket } from "./bucket.js";
import { checkOperations } from "./client.js";
import type { S3Operations } from "./client.js";
import { pauseAfter } from "./pause.js";
import { PointerRegister } from "./pointer-register.js";
import type { Content } from "./pointer-register.js";
import { Turns } from "./turns.js";

export interface S3GuardOptions extends ReportingOptions {
  readonly bucket: string;
  /** What the keys of all its objects begin with, at most 512 bytes. Only this guard may write there. Default `holdfast/`. */
  readonly prefix?: string;
}

/**
 * Guards one content per resource, the lock's name naming it. Every method with a lock refuses a token below the resource's highest
 * with StaleTokenError, having changed nothing, and leaves the resource at the token; an equal token is accepted again. A content is in
 * memory whole, and one PUT: 5 GiB at most on most stores. `read` raises the small object alone.
 */
export interface S3Guard extends ContentGuard {
  /**
   * Deletes the data of writers that died or lost their answer, and resolves with how many objects that were. Safe at any time, with or
   * without the lock: a write that is under way is made again. Does nothing before the resource's first write.
   */
  removeGarbage(resource: string): Promise<number>;
}

/** @throws InvalidArgumentError naming `client` or the option. */
export function s3Guard(client: S3Operations, options: S3GuardOptions): S3Guard {
  checkOperations(client);
  checkOptionNames(options, "options", ["bucket", "prefix", ...reportingOptionNames]);
  const { bucket, prefix = "holdfast/", ...reporting } = options;
  if (typeof bucket !== "string" || bucket === "") {
    throw new InvalidArgumentError("options.bucket", "must be the name of a bucket");
  }
  // A key has at most 1,024 bytes, and what follows the prefix at most 300.
  if (typeof prefix !== "string" || !isWellFormed(prefix) || Buffer.byteLength(prefix) > 512) {
    throw new InvalidArgumentError("options.prefix", "must be a well-formed string of at most 512 bytes");
  }
  return new ObjectGuard(new S3Bucket(client, bucket), prefix, reporting);
}

class ObjectGuard implements S3Guard {
  readonly #register: PointerRegister;
  readonly #guard: Guard<Content>;
  readonly #turns = new Turns();

  constructor(bucket: S3Bucket, prefix: string, reporting: ReportingOptions) {
    // No resource has a plain name like this.
    const checkPrefix = `${prefix}_check/`;
    this.#register = new PointerRegister(bucket, (resource) => `${prefix}${plainName(resource)}/`, checkPrefix);
    this.#guard = new Guard(this.#register, { name: "s3", ...reporting });
  }

  async write(lock: FenceSource, content: string | Uint8Array): Promise<void> {
    const fresh = contentBytes(content, "content");
    await this.#turns.take(namedFence(lock).resource, () => this.#guard.write(lock, { fresh }));
  }

  async update(
    lock: FenceSource,
    change: (current: Buffer | null) => string | Uint8Array | PromiseLike<string | Uint8Array>,
  ): Promise<Buffer> {
    if (typeof change !== "function") throw new InvalidArgumentError("change", "must be a function");
    const { resource } = namedFence(lock);
    let written: Buffer = Buffer.alloc(0);
    const once = (): Promise<Content> =>
      this.#guard.update(lock, async (current) => {
        written = contentBytes(await change(await this.#load(resource, current)), "change");
        return { fresh: written };
      });
    await this.#turns.take(resource, () => untilCurrent(once));
    return written;
  }

  async read(lock: FenceSource): Promise<Buffer | null> {
    const { resource } = namedFence(lock);
    const once = async (): Promise<Buffer | null> => this.#load(resource, await this.#guard.read(lock));
    return this.#turns.take(resource, () => untilCurrent(once));
  }

  async remove(lock: FenceSource): Promise<void> {
    await this.#turns.take(namedFence(lock).resource, () => this.#guard.remove(lock));
  }

  async readNewest(resource: string): Promise<Buffer | null> {
    checkResource(resource);
    return untilCurrent(async () => this.#load(resource, (await this.#register.read(resource))?.record.value ?? null));
  }

  /**
   * Whatever was listed was put before; so the pointer that it is for replaces one from before the bump, and can't come any more. Only the
   * one that the bump found is in use.
   */
  async removeGarbage(resource: string): Promise<number> {
    checkResource(resource);
    const listed = await this.#register.dataNames(resource);
    if (listed.length === 0) return 0;
    const used = await this.#bump(resource, listed);
    if (used === null) return 0;
    const garbage = listed.filter((name) => name !== used.name);
    for (const name of garbage) await this.#register.delete(resource, name);
    return garbage.length;
  }

  /** Puts the pointer anew as it is. Resolves with the data that it names, or null when there is nothing that it would be good for. */
  async #bump(resource: string, listed: readonly string[]): Promise<{ readonly name: string | null } | null> {
    for (let round = 1; round <= bumpsMax; round += 1) {
      const found = await this.#register.read(resource);
      if (found === null) return null;
      const name = found.version.pointer.data?.name ?? null;
      if (listed.every((each) => each === name)) return null;
      const outcome = await this.#register.compareAndSet(resource, found.version, {
        ...found.record,
        writeId: randomUUID(),
      });
      if (outcome instanceof Error) throw outcome;
      if (outcome) return { name };
      await pauseAfter(round);
    }
    // Garbage can wait.
    return null;
  }

  async #load(resource: string, content: Content | null): Promise<Buffer | null> {
    if (content === null) return null;
    if ("fresh" in content) return content.fresh;
    const bytes = await this.#register.load(resource, content);
    if (bytes?.length === content.bytes) return bytes;
    const now = (await this.#register.read(resource))?.version.pointer.data;
    if (bytes === null && now?.name !== content.name) throw new ReplacedError();
    const problem = bytes === null ? "is gone: does something else delete objects there?" : "has another length";
    throw new IncompatibleResourceError(resource, `the data ${content.name} of ${resource} ${problem}`);
  }
}

/** Each failure is another writer's success, and there is always a later day. */
const bumpsMax = 20;

/** The data that was to be read was replaced after the look at its pointer. */
class ReplacedError extends Error {}

/** Each round without a success is another writer's success. */
async function untilCurrent<T>(look: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof ReplacedError)) throw error;
    }
  }
}
