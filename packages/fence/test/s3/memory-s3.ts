/** A store in memory behind the operations of an S3 client, that can be told to fail before, after or long before the effect. */
import { createHash } from "node:crypto";

import type { S3Answer, S3Listing, S3Operations, S3Put, S3Where } from "../../src/s3.js";

export interface Fault {
  /** Null: there is no answer. */
  readonly status: number | null;
  /** `late`: the request is still on its way when the failure is told, and takes effect whenever `arrive()` is called. */
  readonly effect: "none" | "done" | "late";
  /** How often the client says that it sent it. */
  readonly attempts?: number;
}

export type OperationName = "get" | "put" | "delete" | "list";

export interface MemoryS3Options {
  /** With quotes, as HTTP has it, or without. */
  readonly comparesEtags?: "quoted" | "bare" | "never";
  readonly ignoresIfNoneMatch?: boolean;
  readonly givesEtags?: "quoted" | "bare";
  readonly pageSize?: number;
}

export class S3Failure extends Error {
  readonly $metadata: { readonly httpStatusCode?: number; readonly attempts: number };

  constructor(name: string, status: number | null, attempts = 1) {
    super(name);
    this.name = name;
    this.$metadata = status === null ? { attempts } : { httpStatusCode: status, attempts };
  }
}

export class MemoryS3 implements S3Operations {
  readonly objects = new Map<string, { readonly body: Uint8Array; readonly etag: string }>();
  readonly puts: S3Put[] = [];
  /** Asked before each operation, and may take its time. */
  before: (operation: OperationName, key: string) => Fault | null | Promise<Fault | null> = () => null;
  readonly #options: MemoryS3Options;
  readonly #late: (() => unknown)[] = [];

  constructor(options: MemoryS3Options = {}) {
    this.#options = options;
  }

  /** Those on their way take effect, in the order given. */
  arrive(): void {
    for (const effect of this.#late.splice(0)) {
      try {
        effect();
      } catch {
        // Refused: nobody hears of it any more.
      }
    }
  }

  text(key: string): string | null {
    const found = this.objects.get(key);
    return found === undefined ? null : Buffer.from(found.body).toString("utf8");
  }

  getObject({ Key }: S3Where): Promise<S3Answer> {
    return this.#run("get", Key, () => {
      const found = this.objects.get(Key);
      if (found === undefined) throw new S3Failure("NoSuchKey", 404);
      const ETag = this.#options.givesEtags === "bare" ? found.etag : `"${found.etag}"`;
      return { ETag, Body: { transformToByteArray: async () => found.body } };
    });
  }

  putObject(input: S3Put): Promise<unknown> {
    this.puts.push(input);
    return this.#run("put", input.Key, () => {
      if (!this.#isMet(input)) throw new S3Failure("PreconditionFailed", 412);
      this.objects.set(input.Key, { body: input.Body, etag: createHash("md5").update(input.Body).digest("hex") });
      return {};
    });
  }

  deleteObject({ Key }: S3Where): Promise<unknown> {
    return this.#run("delete", Key, () => {
      this.objects.delete(Key);
      return {};
    });
  }

  listObjectsV2(input: { Prefix: string; ContinuationToken?: string }): Promise<S3Listing> {
    return this.#run("list", input.Prefix, () => {
      const keys = [...this.objects.keys()].filter((key) => key.startsWith(input.Prefix)).sort();
      const rest = keys.filter((key) => key > (input.ContinuationToken ?? ""));
      const page = rest.slice(0, this.#options.pageSize ?? 1_000);
      const last = page.at(-1);
      return {
        Contents: page.map((Key) => ({ Key })),
        ...(last === undefined || page.length === rest.length ? {} : { NextContinuationToken: last }),
      };
    });
  }

  #isMet({ Key, IfMatch, IfNoneMatch }: S3Put): boolean {
    const { comparesEtags = "quoted", ignoresIfNoneMatch = false } = this.#options;
    const etag = this.objects.get(Key)?.etag;
    if (IfNoneMatch === "*" && etag !== undefined && !ignoresIfNoneMatch) return false;
    if (IfMatch === undefined || comparesEtags === "never") return true;
    return etag !== undefined && IfMatch === (comparesEtags === "quoted" ? `"${etag}"` : etag);
  }

  async #run<T>(operation: OperationName, key: string, effect: () => T): Promise<T> {
    const fault = await this.before(operation, key);
    if (fault === null) return effect();
    if (fault.effect === "late") this.#late.push(effect);
    // What the store says of a request that it refuses for its own reason isn't heard either.
    if (fault.effect === "done") quietly(effect);
    throw new S3Failure(fault.status === null ? "TimeoutError" : "InternalError", fault.status, fault.attempts);
  }
}

function quietly(effect: () => unknown): void {
  try {
    effect();
  } catch (error) {
    if (!(error instanceof S3Failure)) throw error;
  }
}
