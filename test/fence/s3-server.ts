/**
 * An S3 server in memory that honours If-Match and If-None-Match, and can be told to fail before or after the effect: for what no real one
 * does when it is asked to, and for machines without Ceph. It believes any signature.
 */
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface S3Request {
  readonly method: string;
  /** Empty for the bucket. */
  readonly key: string;
  readonly headers: IncomingMessage["headers"];
}

/** An answer, or a connection that is cut instead. */
export interface S3Fault {
  readonly answer: number | "hang up";
  readonly effect: "before" | "after";
}

export interface TestS3Server {
  /** Of its one bucket. */
  readonly address: string;
  /** Asked for every request. */
  fault: (request: S3Request) => S3Fault | null;
  readonly requests: S3Request[];
  readonly objects: ReadonlyMap<string, { readonly body: Buffer }>;
  stop(): Promise<void>;
}

export interface S3ServerOptions {
  /** How ETags are compared: as HTTP has them, without quotes as Ceph's gateway does, or not at all. */
  readonly etags?: "quoted" | "bare" | "ignored";
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

interface StoredObject {
  readonly body: Buffer;
  readonly etag: string;
}

const codes: Readonly<Record<number, string>> = {
  404: "NoSuchKey",
  409: "ConditionalRequestConflict",
  412: "PreconditionFailed",
  500: "InternalError",
  503: "SlowDown",
};

export async function startS3Server(options: S3ServerOptions = {}): Promise<TestS3Server> {
  const bucket = "notes";
  const objects = new Map<string, StoredObject>();
  const requests: S3Request[] = [];
  const server = createServer((incoming, response) => {
    // A client that was killed in the middle of its request: nothing is done.
    serve(incoming, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const started: TestS3Server = {
    address: `http://127.0.0.1:${port}/${bucket}`,
    fault: () => null,
    requests,
    objects,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await incoming.toArray());
    const url = new URL(incoming.url ?? "", started.address);
    const key = decodeURIComponent(url.pathname).slice(bucket.length + 2);
    const request: S3Request = { method: incoming.method ?? "", key, headers: incoming.headers };
    requests.push(request);
    const fault = started.fault(request);
    const answer = fault?.effect === "before" ? null : answerTo(objects, request, { url, body }, options);
    if (fault === null && answer !== null) send(response, answer);
    else if (fault?.answer === "hang up") response.destroy();
    else send(response, failure(Number(fault?.answer)));
  }

  return started;
}

function answerTo(
  objects: Map<string, StoredObject>,
  { method, key, headers }: S3Request,
  { url, body }: { readonly url: URL; readonly body: Buffer },
  { etags = "quoted" }: S3ServerOptions,
): Answer {
  if (method === "GET" && key === "") return listing(objects, url.searchParams);
  const found = objects.get(key);
  switch (method) {
    case "GET":
      if (found === undefined) return failure(404);
      return { status: 200, headers: { ETag: `"${found.etag}"` }, body: found.body };
    case "PUT": {
      const wanted = headers["if-match"];
      const own = etags === "quoted" ? `"${found?.etag}"` : found?.etag;
      if (wanted !== undefined && etags !== "ignored" && (found === undefined || wanted !== own)) return failure(412);
      if (headers["if-none-match"] === "*" && found !== undefined) return failure(412);
      const etag = createHash("md5").update(body).digest("hex");
      objects.set(key, { body, etag });
      return { status: 200, headers: { ETag: `"${etag}"` } };
    }
    case "DELETE":
      objects.delete(key);
      return { status: 204 };
    default:
      return failure(405);
  }
}

function listing(objects: ReadonlyMap<string, StoredObject>, query: URLSearchParams): Answer {
  const prefix = query.get("prefix") ?? "";
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).sort();
  const contents = keys.map((key) => `<Contents><Key>${escaped(key)}</Key></Contents>`).join("");
  return {
    status: 200,
    body: `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents}</ListBucketResult>`,
  };
}

function failure(status: number): Answer {
  const code = codes[status] ?? "Other";
  return { status, body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>` };
}

function send(response: ServerResponse, { status, headers = {}, body = "" }: Answer): void {
  response.writeHead(status, {
    "x-amz-request-id": randomUUID(),
    "Content-Length": Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
