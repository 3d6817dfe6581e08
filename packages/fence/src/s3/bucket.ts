/** Objects of one bucket. */
import { IncompatibleResourceError } from "../errors.js";
import { bareEtag, isMissingKey, isRefusal } from "./client.js";
import type { S3Operations } from "./client.js";
import { pauseAfter } from "./pause.js";

export interface FoundObject {
  readonly body: Uint8Array;
  /** Without quotes. */
  readonly etag: string;
}

/** Of a put that can do no harm twice. The client has tried several times, too. */
const attemptsMax = 4;

export class S3Bucket {
  /** As errors name it. */
  readonly name: string;
  readonly #client: S3Operations;
  readonly #bucket: string;

  constructor(client: S3Operations, bucket: string) {
    this.name = `s3://${bucket}`;
    this.#client = client;
    this.#bucket = bucket;
  }

  /** Null when there is no such object. */
  async get(key: string): Promise<FoundObject | null> {
    try {
      const { Body, ETag } = await this.#client.getObject({ Bucket: this.#bucket, Key: key });
      if (Body === undefined || ETag === undefined) {
        throw new IncompatibleResourceError(this.name, `${this.name} gave ${key} without a body or an ETag`);
      }
      return { body: await Body.transformToByteArray(), etag: bareEtag(ETag) };
    } catch (error) {
      if (isMissingKey(error)) return null;
      throw error;
    }
  }

  async put(key: string, body: Uint8Array, condition: { IfMatch?: string; IfNoneMatch?: string }): Promise<void> {
    await this.#client.putObject({ Bucket: this.#bucket, Key: key, Body: body, ...condition });
  }

  /** For an object that only ever has this body: an answer that was lost is asked for again. */
  async putOnly(key: string, body: Uint8Array): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.put(key, body, {});
      } catch (error) {
        if (isRefusal(error) || attempt >= attemptsMax) throw error;
        await pauseAfter(attempt);
      }
    }
  }

  async delete(key: string): Promise<void> {
    await this.#client.deleteObject({ Bucket: this.#bucket, Key: key });
  }

  /** For what nothing names: what can't be deleted now is garbage, and does no harm. */
  async discard(key: string): Promise<void> {
    await this.delete(key).catch(() => undefined);
  }

  async keysUnder(prefix: string): Promise<string[]> {
    const keys: string[] = [];
    let next: string | undefined;
    do {
      const listing = await this.#client.listObjectsV2({
        Bucket: this.#bucket,
        Prefix: prefix,
        ...(next === undefined ? {} : { ContinuationToken: next }),
      });
      for (const { Key } of listing.Contents ?? []) if (Key !== undefined) keys.push(Key);
      next = listing.NextContinuationToken;
    } while (next !== undefined && next !== "");
    return keys;
  }
}
