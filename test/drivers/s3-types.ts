// Compiled by test/fence/pg-types.test.ts: the types of Amazon's client fit the guard, which doesn't depend on it.
import * as sdk from "@aws-sdk/client-s3";
import { s3Commands, s3Guard } from "@holdfast/fence/s3";
import type { S3Operations } from "@holdfast/fence/s3";

const whole: S3Operations = new sdk.S3();
const bare: S3Operations = s3Commands(new sdk.S3Client(), sdk);
const lock = { token: 33, fence: (name?: string) => ({ resource: name ?? "doc:42", token: 33 }) };

export async function save(body: string): Promise<string> {
  await s3Guard(bare, { bucket: "notes" }).write(lock, body);
  return String(await s3Guard(whole, { bucket: "notes", prefix: "" }).read(lock));
}
