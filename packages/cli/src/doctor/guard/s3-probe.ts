/** S3-compatible object storage for `doctor --guard`: a scratch resource under the guard's prefix, and whether a rule of the bucket deletes there. */
import { s3Guard } from "@holdfast/fence/s3";
import type { S3Operations } from "@holdfast/fence/s3";
import type { Finding } from "../finding.js";
import { ok, problem } from "../finding.js";
import type { ProbedStore, StoredProbe } from "./examine-guard.js";
import type { ProbePlace } from "./probe-store.js";
import { s3Address } from "./s3-address.js";

interface Client extends S3Operations {
  getBucketLifecycleConfiguration(input: { Bucket: string }): Promise<{ readonly Rules?: readonly Rule[] }>;
  destroy(): void;
}

interface Filter {
  readonly Prefix?: string;
  readonly Tag?: unknown;
  readonly Tags?: readonly unknown[];
  readonly And?: Filter;
}

/** Of a bucket's lifecycle. */
export interface Rule {
  readonly ID?: string;
  readonly Status?: string;
  readonly Prefix?: string;
  readonly Filter?: Filter;
  readonly Expiration?: { readonly Days?: number; readonly Date?: unknown };
}

/** Writes of one guard on one resource follow each other; those of several meet at the store, as those of several processes do. */
const guardsAtOnce = 4;

export async function probeS3({ url, scratch, driver, timeoutMs }: ProbePlace): Promise<ProbedStore> {
  const { bucket, prefix, options } = s3Address(url, process.env);
  const { S3 } = driver as { readonly S3: new (options: object) => Client };
  const requestHandler = { connectionTimeout: timeoutMs, requestTimeout: timeoutMs };
  const client = new S3({ ...options, requestHandler });
  const scratchPrefix = `${prefix}${scratch}/`;
  const guards = Array.from({ length: guardsAtOnce }, () => s3Guard(client, { bucket, prefix: scratchPrefix }));
  const close = async (): Promise<void> => {
    try {
      for (const key of await keysUnder(client, bucket, scratchPrefix)) {
        await client.deleteObject({ Bucket: bucket, Key: key });
      }
    } finally {
      client.destroy();
    }
  };
  try {
    // Also tells early of what is wrong with the bucket or the keys.
    await keysUnder(client, bucket, scratchPrefix);
    return {
      name: `S3 bucket ${bucket}`,
      probes: [
        {
          form: `an object (${scratchPrefix}...)`,
          write: async (token, text) => guards[token % guardsAtOnce]?.write({ resource: scratch, token }, text),
          stored: () => storedUnder(client, bucket, scratchPrefix),
        },
      ],
      settings: [lifecycleFinding(await rulesOf(client, bucket), prefix)],
      close,
    };
  } catch (error) {
    client.destroy();
    throw error;
  }
}

/** The pointer as it lies there, and what it points at. */
async function storedUnder(client: Client, bucket: string, prefix: string): Promise<StoredProbe> {
  const nothing = { text: null, token: null };
  const key = (await keysUnder(client, bucket, prefix)).find((each) => each.endsWith("/fence"));
  if (key === undefined) return nothing;
  const pointer = await textAt(client, bucket, key);
  const token = /"token":(\d+)/.exec(pointer)?.[1] ?? null;
  const name = /"name":"([^"]+)"/.exec(pointer)?.[1];
  if (name === undefined) return { ...nothing, token };
  return { text: await textAt(client, bucket, key.replace(/fence$/, `data/${name}`)), token };
}

async function textAt(client: Client, bucket: string, key: string): Promise<string> {
  const { Body } = await client.getObject({ Bucket: bucket, Key: key });
  return Buffer.from((await Body?.transformToByteArray()) ?? []).toString("utf8");
}

async function keysUnder(client: Client, bucket: string, prefix: string): Promise<string[]> {
  // Some dozen objects at most: one page.
  const { Contents = [] } = await client.listObjectsV2({ Bucket: bucket, Prefix: prefix });
  return Contents.flatMap(({ Key }) => (Key === undefined ? [] : [Key]));
}

/** Null when the store doesn't tell. */
async function rulesOf(client: Client, bucket: string): Promise<readonly Rule[] | null> {
  try {
    return (await client.getBucketLifecycleConfiguration({ Bucket: bucket })).Rules ?? [];
  } catch (error) {
    return (error as { readonly name?: unknown }).name === "NoSuchLifecycleConfiguration" ? [] : null;
  }
}

export function lifecycleFinding(rules: readonly Rule[] | null, prefix: string): Finding {
  if (rules === null) {
    return ok("eviction", `the store doesn't tell its lifecycle rules: see that none deletes under ${prefix}`);
  }
  const rule = rules.find((each) => deletesUnder(each, prefix));
  if (rule === undefined) return ok("eviction", `no lifecycle rule deletes current objects under ${prefix}`);
  return problem("eviction", {
    node: null,
    seen: `the lifecycle rule ${JSON.stringify(rule.ID ?? "")} deletes objects under ${prefix} by their age`,
    why: "A fence that is deleted lets an old holder in, and data that is deleted is lost.",
    mend: "leave the guard's prefix out of the rule, or let it delete noncurrent versions only: docs/fencing.md",
  });
}

function deletesUnder({ Status, Prefix, Filter, Expiration }: Rule, prefix: string): boolean {
  const isDeleting = Status === "Enabled" && (Expiration?.Days !== undefined || Expiration?.Date !== undefined);
  const all = Filter?.And ?? Filter;
  // The guard's objects have no tags.
  if (!isDeleting || all?.Tag !== undefined || (all?.Tags ?? []).length > 0) return false;
  const under = Prefix ?? all?.Prefix ?? "";
  return under.startsWith(prefix) || prefix.startsWith(under);
}
