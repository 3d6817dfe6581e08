/**
 * How a store wants ETags in If-Match, found out on a scratch object: Ceph's gateway compares them without their quotes, others as HTTP
 * has them. Some stores, and all clients from before the end of 2024, drop If-Match or If-None-Match without a word: nothing would be
 * guarded, so that is found here, too.
 */
import { randomUUID } from "node:crypto";

import { IncompatibleResourceError } from "../errors.js";
import { statusOf, wasSentOnce } from "./client.js";
import type { S3Bucket } from "./bucket.js";
import { pauseAfter } from "./pause.js";

export type EtagForm = "quoted" | "bare";

export function etagIn(form: EtagForm, bare: string): string {
  return form === "quoted" ? `"${bare}"` : bare;
}

/** A store that is busy or restarts has so long. */
const attemptsMax = 5;
/** The form of an MD5. No object here has it. */
const strange = "0".repeat(32);

/** Rejects with IncompatibleResourceError, or with what the store said in the end. */
export async function honouredForm(bucket: S3Bucket, prefix: string): Promise<EtagForm> {
  for (let attempt = 1; ; attempt += 1) {
    const key = `${prefix}${randomUUID()}`;
    try {
      return await tried(bucket, key);
    } catch (error) {
      const status = statusOf(error);
      const mayPass = status === null || status === 409 || status === 412 || status >= 500;
      if (error instanceof IncompatibleResourceError || !mayPass || attempt >= attemptsMax) throw error;
      await pauseAfter(attempt);
    } finally {
      await bucket.discard(key);
    }
  }
}

async function tried(bucket: S3Bucket, key: string): Promise<EtagForm> {
  const put = (condition: { IfMatch?: string; IfNoneMatch?: string }): Promise<unknown> =>
    bucket.put(key, Buffer.from("scratch: may be deleted"), condition);
  const first = await refusalOf(put({ IfNoneMatch: "*" }), bucket);
  if (first !== null) throw first;
  if (!(await isRefused(put({ IfNoneMatch: "*" }), bucket))) throw ignores(bucket, "If-None-Match: *");
  const found = await bucket.get(key);
  if (found === null)
    throw new IncompatibleResourceError(bucket.name, `${bucket.name} doesn't show what was just written`);
  for (const form of ["quoted", "bare"] as const) {
    if (!(await isRefused(put({ IfMatch: etagIn(form, strange) }), bucket))) throw ignores(bucket, "If-Match");
    if (!(await isRefused(put({ IfMatch: etagIn(form, found.etag) }), bucket))) return form;
  }
  throw new IncompatibleResourceError(bucket.name, `${bucket.name} refuses If-Match with an object's own ETag`);
}

function ignores(bucket: S3Bucket, header: string): IncompatibleResourceError {
  return new IncompatibleResourceError(
    bucket.name,
    `${bucket.name} can't be guarded: the store, or the client in use, ignores ${header}`,
  );
}

async function isRefused(put: Promise<unknown>, bucket: S3Bucket): Promise<boolean> {
  return (await refusalOf(put, bucket)) !== null;
}

/** What says that the condition isn't met; null when it is. Whatever else comes is thrown, and decides nothing. */
async function refusalOf(put: Promise<unknown>, bucket: S3Bucket): Promise<Error | null> {
  try {
    await put;
    return null;
  } catch (error) {
    if (statusOf(error) === 501) {
      throw new IncompatibleResourceError(
        bucket.name,
        `${bucket.name} can't be guarded: the store has no conditional writes`,
      );
    }
    if (statusOf(error) === 412 && wasSentOnce(error) && error instanceof Error) return error;
    throw error;
  }
}
