/** From the URL of `doctor --guard` to the store behind it, and what was found there. */
import { randomBytes } from "node:crypto";
import { CommandFailure } from "../../command-failure.js";
import { shortened } from "../../failures.js";
import type { Finding } from "../finding.js";
import { examineGuard } from "./examine-guard.js";
import type { ProbedStore } from "./examine-guard.js";
import { loadDriver } from "./load-driver.js";
import { probeMysql } from "./mysql-probe.js";
import { probePostgres } from "./postgres-probe.js";
import { probeRedis } from "./redis-probe.js";
import { s3Address } from "./s3-address.js";
import { probeS3 } from "./s3-probe.js";
import { databaseFile, probeSqlite } from "./sqlite-probe.js";

export interface ProbePlace {
  readonly url: string;
  /** Where the command was called. */
  readonly folder: string;
  /** What everything that is made is named after: a fresh name that needs no quotes. */
  readonly scratch: string;
  /** The driver's module. */
  readonly driver: unknown;
  readonly timeoutMs: number;
}

interface Scheme {
  readonly drivers: readonly [string, ...string[]];
  readonly probe: (place: ProbePlace) => Promise<ProbedStore>;
  /** Whether the URL can be meant at all, before a driver is looked for. Throws CommandFailure. */
  readonly check?: (url: string, folder: string) => unknown;
}

const postgres: Scheme = { drivers: ["pg"], probe: probePostgres };
const mysql: Scheme = { drivers: ["mysql2/promise"], probe: probeMysql };
const redis: Scheme = { drivers: ["redis"], probe: probeRedis };
const sqlite: Scheme = { drivers: ["better-sqlite3", "node:sqlite"], probe: probeSqlite, check: databaseFile };
const s3: Scheme = {
  drivers: ["@aws-sdk/client-s3"],
  probe: probeS3,
  check: (url) => s3Address(url, process.env),
};
const schemes: Readonly<Record<string, Scheme>> = {
  "postgres:": postgres,
  "postgresql:": postgres,
  "mysql:": mysql,
  "mariadb:": { ...mysql, probe: (place) => probeMysql({ ...place, url: place.url.replace(/^mariadb:/, "mysql:") }) },
  "redis:": redis,
  "rediss:": redis,
  "sqlite:": sqlite,
  "file:": sqlite,
  "s3:": s3,
  "s3+https:": s3,
  "s3+http:": s3,
};

/** `folder`: where the driver is looked for. What was made in the store is removed, whatever is found. */
export async function examineStore(url: string, folder: string, timeoutMs: number): Promise<readonly Finding[]> {
  const protocol = URL.canParse(url) ? new URL(url).protocol : "";
  const scheme = Object.hasOwn(schemes, protocol) ? schemes[protocol] : undefined;
  if (scheme === undefined) {
    // Not repeated: it may hold a password.
    const problem =
      "--guard wants the URL of a store: postgres://, mysql://, redis://, sqlite:FILE or s3://, or of a guarded resource: https://";
    throw new CommandFailure("usage", "invalid_argument", problem);
  }
  scheme.check?.(url, folder);
  const driver = await loadDriver(scheme.drivers, folder);
  const scratch = `holdfast_doctor_${randomBytes(6).toString("hex")}`;
  try {
    const store = await scheme.probe({ url, folder, scratch, driver: driver.module, timeoutMs });
    try {
      return await examineGuard(store);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure("error", "store_failed", `${driver.name} says: ${wordsOf(error)}`);
  }
}

/** A connection that several addresses refused has no words of its own. */
function wordsOf(error: unknown): string {
  if (error instanceof AggregateError) return shortened(error.errors.map((each) => wordsOf(each)).join("; "));
  return error instanceof Error && error.message !== "" ? error.message : String(error);
}
