/**
 * Debian's Ceph with its S3 gateway, the smallest that there is: one monitor, one OSD on a file, one gateway, on free ports and in a
 * temporary folder. Takes some 20 s to start, for the gateway makes its pools one by one.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "../harness/until.js";
import { mayMiss, skipWithoutDriver } from "./drivers.js";
import { freePort, keep, programPath } from "./keeper.js";
import type { Keeper } from "./keeper.js";
import { s3Client, s3Keys } from "./s3-client.js";

export interface TestRadosgw {
  /** Of a bucket. */
  readonly address: string;
  /** Kills the OSD and the gateway, starts them on the same files, and resolves when they answer. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

const programs = ["ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin"] as const;
/** Beside three other test files on two cores, and once more after a crash. */
const startMsMax = 120_000;

/** For a test's `skip`: what to install, or false. With CI set nothing may be missing. */
export function skipWithoutRadosgw(): string | false {
  if (!mayMiss()) return false;
  if (programs.some((name) => programPath(name) === null)) {
    return "Ceph's gateway is not installed: run `apt-get install --no-install-recommends radosgw ceph-mon ceph-osd`";
  }
  return skipWithoutDriver("@aws-sdk/client-s3");
}

export async function startRadosgw(): Promise<TestRadosgw> {
  const ceph = await Ceph.start();
  const address = `http://127.0.0.1:${ceph.gatewayPort}/notes`;
  const client = s3Client(address);
  try {
    await until("a bucket is made", () => client.createBucket({ Bucket: "notes" }).then(() => true), startMsMax);
  } finally {
    client.destroy();
  }
  return { address, crash: () => ceph.crash(), stop: () => ceph.stop() };
}

class Ceph {
  readonly gatewayPort: number;
  readonly #folder: string;
  readonly #keepers = new Map<string, Keeper>();

  private constructor(folder: string, gatewayPort: number) {
    this.#folder = folder;
    this.gatewayPort = gatewayPort;
  }

  static async start(): Promise<Ceph> {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-ceph-"));
    for (const name of ["mon", "osd", "run"]) mkdirSync(join(folder, name));
    const [monitorPort, gatewayPort] = [await freePort(), await freePort()];
    const [cluster, osd] = [randomUUID(), randomUUID()];
    writeFileSync(join(folder, "ceph.conf"), configuration(folder, { cluster, monitorPort, gatewayPort }));
    const ceph = new Ceph(folder, gatewayPort);
    try {
      const map = join(folder, "monmap");
      await ceph.#run("monmaptool", [
        "--create",
        "--fsid",
        cluster,
        "--addv",
        "a",
        `[v2:127.0.0.1:${monitorPort}]`,
        map,
      ]);
      await ceph.#run("ceph-mon", ["--mkfs", "-i", "a", "--monmap", map]);
      ceph.#keep("ceph-mon", ["-i", "a"]);
      await ceph.#run("ceph", ["osd", "new", osd, "0"]);
      await ceph.#run("ceph-osd", ["-i", "0", "--mkfs", "--osd-uuid", osd]);
      await ceph.#startServing();
      await ceph.#run("radosgw-admin", [
        ...["user", "create", "--uid", "holdfast", "--display-name", "holdfast"],
        ...["--access-key", s3Keys.accessKeyId, "--secret-key", s3Keys.secretAccessKey],
      ]);
    } catch (error) {
      await ceph.stop();
      throw error;
    }
    return ceph;
  }

  async crash(): Promise<void> {
    for (const name of ["radosgw", "ceph-osd"]) {
      this.#keepers.get(name)?.kill();
      await this.#keepers.get(name)?.ended();
    }
    await this.#startServing();
  }

  async stop(): Promise<void> {
    for (const keeper of this.#keepers.values()) keeper.end();
    for (const keeper of this.#keepers.values()) await keeper.ended();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #startServing(): Promise<void> {
    this.#keep("ceph-osd", ["-i", "0"]);
    this.#keep("radosgw", ["-n", "client.rgw"]);
    await until("Ceph's gateway answers", () => this.#answers(), startMsMax);
  }

  async #answers(): Promise<boolean> {
    for (const [name, keeper] of this.#keepers) {
      const words = keeper.lastWords();
      if (words !== null) throw new Error(`${name} did not start: ${words}`);
    }
    const { ok } = await fetch(`http://127.0.0.1:${this.gatewayPort}/`, { signal: AbortSignal.timeout(5_000) });
    return ok;
  }

  #keep(name: string, words: readonly string[]): void {
    this.#keepers.set(name, keep(pathOf(name), [...this.#common(), "-f", ...words]));
  }

  async #run(name: string, words: readonly string[]): Promise<void> {
    const common = name === "monmaptool" ? [] : this.#common();
    await promisify(execFile)(pathOf(name), [...common, ...words], { timeout: startMsMax });
  }

  #common(): string[] {
    return ["-c", join(this.#folder, "ceph.conf")];
  }
}

function pathOf(name: string): string {
  return programPath(name) ?? name;
}

interface Facts {
  readonly cluster: string;
  readonly monitorPort: number;
  readonly gatewayPort: number;
}

/** No keys, one copy of everything, and one placement group to a pool: what a single OSD can be. */
function configuration(folder: string, { cluster, monitorPort, gatewayPort }: Facts): string {
  const lines = [
    "[global]",
    `fsid = ${cluster}`,
    `mon host = v2:127.0.0.1:${monitorPort}`,
    "public addr = 127.0.0.1",
    "auth cluster required = none",
    "auth service required = none",
    "auth client required = none",
    // Without keys there is nothing to encrypt with.
    "ms mon client mode = crc secure",
    "osd pool default size = 1",
    "osd pool default min size = 1",
    "osd pool default pg num = 1",
    "osd pool default pgp num = 1",
    "osd crush chooseleaf type = 0",
    `mon data = ${join(folder, "mon")}`,
    // A disk that is nearly full is other people's.
    "mon data avail crit = 1",
    "mon data avail warn = 1",
    "osd objectstore = bluestore",
    `osd data = ${join(folder, "osd")}`,
    "bluestore block size = 1073741824",
    "osd memory target = 939524096",
    `log file = ${join(folder, "$name.log")}`,
    `admin socket = ${join(folder, "run", "$name.asok")}`,
    `run dir = ${join(folder, "run")}`,
    `rgw frontends = beast endpoint=127.0.0.1:${gatewayPort} tcp_nodelay=1`,
  ];
  return `${lines.join("\n")}\n`;
}
