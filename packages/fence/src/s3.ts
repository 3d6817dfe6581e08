/** A guard for S3-compatible object storage that honours If-Match: a small pointer object per resource, the data in objects of their own. */
export { s3Commands } from "./s3/client.js";
export type { S3Answer, S3Commands, S3Listing, S3Operations, S3Put, S3Sender, S3Where } from "./s3/client.js";
export { s3Guard } from "./s3/s3-guard.js";
export type { S3Guard, S3GuardOptions } from "./s3/s3-guard.js";
