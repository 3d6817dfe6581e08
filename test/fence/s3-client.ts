/** A client of @aws-sdk/client-s3 for the stores of these tests: their address is http://host:port/bucket. */
import type { S3Operations } from "@holdfast/fence/s3";
import { driver } from "./drivers.js";

export interface TestS3 extends S3Operations {
  createBucket(input: { Bucket: string }): Promise<unknown>;
  destroy(): void;
}

export const s3Keys = { accessKeyId: "holdfast", secretAccessKey: "no-secret" };

export function bucketOf(address: string): string {
  return new URL(address).pathname.slice(1);
}

/** What people set for stores that aren't Amazon's. */
export function s3Options(address: string): object {
  return {
    endpoint: new URL(address).origin,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: s3Keys,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  };
}

export function s3Client(address: string, options: object = {}): TestS3 {
  // It warns of Node.js 20 in every process.
  process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] = "true";
  const { S3 } = driver("@aws-sdk/client-s3") as { readonly S3: new (options: object) => TestS3 };
  return new S3({ ...s3Options(address), ...options });
}
