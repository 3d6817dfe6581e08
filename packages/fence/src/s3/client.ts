/** What is used of an S3 client, and what its errors say. Nothing is imported: `new S3()` of @aws-sdk/client-s3 3.x has this shape. */
import { InvalidArgumentError } from "../errors.js";

export interface S3Where {
  readonly Bucket: string;
  readonly Key: string;
}

export interface S3Put extends S3Where {
  readonly Body: Uint8Array;
  readonly IfMatch?: string;
  readonly IfNoneMatch?: string;
}

export interface S3Answer {
  readonly Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined;
  readonly ETag?: string | undefined;
}

export interface S3Listing {
  readonly Contents?: readonly { readonly Key?: string | undefined }[] | undefined;
  readonly NextContinuationToken?: string | undefined;
}

/** Errors bear the answer's status as `$metadata.httpStatusCode`. */
export interface S3Operations {
  getObject(input: S3Where): Promise<S3Answer>;
  putObject(input: S3Put): Promise<unknown>;
  deleteObject(input: S3Where): Promise<unknown>;
  listObjectsV2(input: {
    readonly Bucket: string;
    readonly Prefix: string;
    readonly ContinuationToken?: string;
  }): Promise<S3Listing>;
}

/** An `S3Client`, which has nothing but this. */
export interface S3Sender {
  send(command: never): Promise<unknown>;
}

/** The module @aws-sdk/client-s3 itself, or these of it. */
export interface S3Commands {
  readonly GetObjectCommand: new (input: { Bucket: string; Key: string }) => unknown;
  readonly PutObjectCommand: new (input: {
    Bucket: string;
    Key: string;
    Body: Uint8Array;
    IfMatch?: string;
    IfNoneMatch?: string;
  }) => unknown;
  readonly DeleteObjectCommand: new (input: { Bucket: string; Key: string }) => unknown;
  readonly ListObjectsV2Command: new (input: { Bucket: string; Prefix: string; ContinuationToken?: string }) => unknown;
}

const commandNames = ["GetObjectCommand", "PutObjectCommand", "DeleteObjectCommand", "ListObjectsV2Command"] as const;
const operationNames = ["getObject", "putObject", "deleteObject", "listObjectsV2"] as const;

/**
 * The operations of a bare `S3Client`, for bundles that leave the whole `S3` out.
 * @throws InvalidArgumentError naming `client` or a command.
 */
export function s3Commands(client: S3Sender, commands: S3Commands): S3Operations {
  if (typeof (client as Partial<S3Sender> | null)?.send !== "function") {
    throw new InvalidArgumentError("client", "must be an S3Client, with send()");
  }
  for (const name of commandNames) {
    if (typeof (commands as Partial<S3Commands> | null)?.[name] !== "function") {
      throw new InvalidArgumentError(`commands.${name}`, "must be the command of @aws-sdk/client-s3");
    }
  }
  const { GetObjectCommand, PutObjectCommand, DeleteObjectCommand, ListObjectsV2Command } = commands;
  const send = (command: unknown): Promise<unknown> => client.send(command as never);
  return {
    getObject: async (input) => (await send(new GetObjectCommand(input))) as S3Answer,
    putObject: (input) => send(new PutObjectCommand(input)),
    deleteObject: (input) => send(new DeleteObjectCommand(input)),
    listObjectsV2: async (input) => (await send(new ListObjectsV2Command(input))) as S3Listing,
  };
}

/** @throws InvalidArgumentError naming `client`. */
export function checkOperations(client: unknown): asserts client is S3Operations {
  const missing = operationNames.find((name) => typeof (client as Partial<S3Operations> | null)?.[name] !== "function");
  if (missing === undefined) return;
  throw new InvalidArgumentError(
    "client",
    `has no ${missing}(): it must be an S3 of @aws-sdk/client-s3; of an S3Client make one by s3Commands()`,
  );
}

interface ErrorFacts {
  readonly name?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown; readonly attempts?: unknown };
}

/** The status of the answer; null when there was none. */
export function statusOf(error: unknown): number | null {
  const status = (error as ErrorFacts | null)?.$metadata?.httpStatusCode;
  return typeof status === "number" ? status : null;
}

/** The client sent it once. A repetition's answer tells nothing of the first one: 412 may come because the first took effect. */
export function wasSentOnce(error: unknown): boolean {
  return ((error as ErrorFacts | null)?.$metadata?.attempts ?? 1) === 1;
}

export function isMissingKey(error: unknown): boolean {
  const name = (error as ErrorFacts | null)?.name;
  return statusOf(error) === 404 && (name === "NoSuchKey" || name === "NotFound");
}

/** Those that say nothing of the request itself, or not before another look at the object. */
const openStatuses: readonly number[] = [408, 409, 412, 425, 429];

/** The store refused, and surely did nothing. */
export function isRefusal(error: unknown): boolean {
  const status = statusOf(error);
  if (status === null || !wasSentOnce(error)) return false;
  return status === 501 || (status >= 400 && status < 500 && !openStatuses.includes(status));
}

/** An ETag without its quotes, however the client gives it. */
export function bareEtag(etag: string): string {
  return etag.replace(/^"(.*)"$/, "$1");
}
