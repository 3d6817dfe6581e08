/** The guard of object storage behind the interface of the one suite: at Ceph's gateway, and at the tests' own server. */
import type { ReportingOptions } from "@holdfast/fence";
import { s3Guard } from "@holdfast/fence/s3";
import { skipWithoutDriver } from "../drivers.js";
import type { GuardedStore, Place, StoreKind, Stored } from "../guarded-store.js";
import { unavailable } from "../guarded-store.js";
import { skipWithoutRadosgw, startRadosgw } from "../radosgw.js";
import { bucketOf, s3Client } from "../s3-client.js";
import type { TestS3 } from "../s3-client.js";
import { startS3Server } from "../s3-server.js";

interface Note {
  readonly body: string | null;
  readonly lines: readonly string[];
}

const empty: Note = { body: null, lines: [] };

async function open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
  const client = s3Client(address);
  const bucket = bucketOf(address);
  const notes = s3Guard(client, { bucket, prefix: "notes/", ...reporting });
  const parsed = (content: Buffer | null): Note =>
    content === null ? empty : (JSON.parse(content.toString("utf8")) as Note);
  return {
    write: (fence, body) => notes.write(fence, JSON.stringify({ ...empty, body })),
    read: async (fence) => parsed(await notes.read(fence)).body,
    append: async (fence, line) => {
      await notes.update(fence, (content) => {
        const note = parsed(content);
        return JSON.stringify({ ...note, lines: [...note.lines, line] });
      });
    },
    remove: (fence) => notes.remove(fence),
    writeAll: unavailable,
    stored: (resource) => storedIn(client, bucket, resource),
    close: async () => client.destroy(),
  };
}

/** Past the guard. A pointer and what it names are of one moment, for the latter never changes. */
async function storedIn(client: TestS3, bucket: string, resource: string): Promise<Stored> {
  const folder = `notes/${plainName(resource)}/`;
  for (;;) {
    const pointer = await objectIn(client, bucket, `${folder}fence`);
    if (pointer === null) return { ...empty, token: null };
    const { token, data } = JSON.parse(pointer) as { token: number; data: { name: string } | null };
    if (data === null) return { ...empty, token };
    const note = await objectIn(client, bucket, `${folder}data/${data.name}`);
    // Replaced and deleted meanwhile.
    if (note !== null) return { ...(JSON.parse(note) as Note), token };
  }
}

/** As docs/fencing.md has it, for names that aren't too long to be read. */
function plainName(resource: string): string {
  return [...Buffer.from(resource)]
    .map((byte) => [byte, String.fromCharCode(byte)] as const)
    .map(([byte, character]) => (/[a-z0-9-]/.test(character) ? character : `_${byte.toString(16).padStart(2, "0")}`))
    .join("");
}

async function objectIn(client: TestS3, bucket: string, key: string): Promise<string | null> {
  try {
    const { Body } = await client.getObject({ Bucket: bucket, Key: key });
    return Buffer.from((await Body?.transformToByteArray()) ?? []).toString("utf8");
  } catch (error) {
    if (error instanceof Error && error.name === "NoSuchKey") return null;
    throw error;
  }
}

const common = { guard: "s3", remembersRemoved: true, changesSeveral: false, open };

export const radosgwObjects: StoreKind = {
  ...common,
  kind: "Ceph's S3 gateway",
  crashes: true,
  skip: skipWithoutRadosgw(),
  start: (): Promise<Place> => startRadosgw(),
};

export const s3ServerObjects: StoreKind = {
  ...common,
  kind: "an S3 server of the tests",
  crashes: false,
  skip: skipWithoutDriver("@aws-sdk/client-s3"),
  start: async (): Promise<Place> => ({ ...(await startS3Server()), crash: unavailable }),
};
