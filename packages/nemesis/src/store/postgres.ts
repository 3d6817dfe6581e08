/** A PostgreSQL server of the run's own, on a free port, with its files in a temporary folder. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../free-ports.js";
import { Child } from "../processes/child.js";
import type { ProcessOwner } from "../processes/child.js";
import { until } from "../until.js";
import { openPool } from "./driver.js";
import type { StorePool } from "./driver.js";

const host = "127.0.0.1";
const startMs = 60_000;

/** Null when it can be started, else what to install. */
export function missingPostgres(): string | null {
  return binFolder() === null ? "PostgreSQL is not installed: on Debian, run `apt-get install postgresql`" : null;
}

export class PostgresServer {
  readonly port: number;
  /** For whoever looks at the result; never cut off. */
  readonly pool: StorePool;
  private readonly password: string;
  private readonly child: Child;
  private readonly folder: string;

  private constructor(parts: { port: number; password: string; child: Child; folder: string }) {
    this.port = parts.port;
    this.password = parts.password;
    this.child = parts.child;
    this.folder = parts.folder;
    this.pool = openPool(this.urlAt(`${host}:${parts.port}`), 2);
  }

  static async start(): Promise<PostgresServer> {
    const bin = binFolder();
    if (bin === null) throw new Error("no PostgreSQL");
    const owner = ownerOfServer();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-store-"));
    const password = randomBytes(16).toString("hex");
    // For a run that is interrupted; the server is killed then.
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    let said = "";
    const hear = (line: string): void => {
      said = `${said}${line}\n`.slice(-2_000);
    };
    try {
      const data = initialize(bin, folder, password, owner);
      const [port = 0] = await freePorts(host, 1);
      const settings = ["listen_addresses=127.0.0.1", `port=${port}`, "unix_socket_directories=", "max_connections=60"];
      // Nothing here outlives the run: only what its clients see counts.
      settings.push("shared_buffers=16MB", "fsync=off", "full_page_writes=off", "synchronous_commit=off");
      const child = new Child({
        command: [join(bin, "postgres"), "-D", data, ...settings.flatMap((setting) => ["-c", setting])],
        env: { LC_ALL: "C" },
        owner,
        onOut: hear,
        onErr: hear,
        onExit: () => undefined,
      });
      const server = new PostgresServer({ port, password, child, folder });
      await server.ready(() => said);
      return server;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** For one who reaches it at another address. */
  urlAt(address: string): string {
    return `postgres://postgres:${this.password}@${address}/postgres`;
  }

  async stop(): Promise<void> {
    await this.pool.end();
    this.child.signal("SIGQUIT");
    if ((await this.child.exitedWithin(10_000)) === null) this.child.kill();
    await this.child.exited();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async ready(said: () => string): Promise<void> {
    await until("PostgreSQL answers", startMs, async () => {
      if (!this.child.isRunning) throw new Error(`PostgreSQL did not start: ${said()}`);
      return this.pool.query("SELECT 1").catch(() => null);
    });
  }
}

function initialize(bin: string, folder: string, password: string, owner: ProcessOwner | null): string {
  const data = join(folder, "data");
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  mkdirSync(data, { mode: 0o700 });
  if (owner !== null) for (const path of [folder, data, passwordFile]) chownSync(path, owner.uid, owner.gid);
  const words = ["-D", data, "-U", "postgres", "-A", "scram-sha-256", `--pwfile=${passwordFile}`, "--locale=C"];
  const options = { cwd: folder, stdio: "pipe", ...owner } as const;
  execFileSync(join(bin, "initdb"), [...words, "-E", "UTF8", "--no-sync"], options);
  return data;
}

/** The newest of Debian's versions, else the one in PATH. */
function binFolder(): string | null {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const inPath = (process.env["PATH"] ?? "").split(":").filter((folder) => folder !== "");
  const folders = [...versions.map((version) => join(root, version, "bin")), ...inPath];
  return folders.find((folder) => ["initdb", "postgres"].every((name) => existsSync(join(folder, name)))) ?? null;
}

/** PostgreSQL refuses to run as root. */
function ownerOfServer(): ProcessOwner | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}
