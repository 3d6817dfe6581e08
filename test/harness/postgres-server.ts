/** Debian's PostgreSQL as programs and files: where it is installed, a fresh data directory, the words that start a server on it. */
import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePorts } from "@holdfast/nemesis/free-ports";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface DataDirectory {
  readonly data: string;
  /** Of the user `postgres`. */
  readonly password: string;
  readonly owner: Owner | null;
}

/** The newest of Debian's versions, else the one in PATH. */
export function binFolder(): string | null {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const inPath = (process.env["PATH"] ?? "").split(":").filter((folder) => folder !== "");
  const folders = [...versions.map((version) => join(root, version, "bin")), ...inPath];
  return folders.find((folder) => ["initdb", "postgres"].every((name) => existsSync(join(folder, name)))) ?? null;
}

/** PostgreSQL and PgBouncer refuse to run as root. */
export function ownerOfServer(): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

/** In `folder`, which becomes the server's. */
export async function newDataDirectory(bin: string, folder: string): Promise<DataDirectory> {
  const owner = ownerOfServer();
  const data = join(folder, "data");
  const passwordFile = join(folder, "password");
  const password = randomBytes(16).toString("hex");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  mkdirSync(data, { mode: 0o700 });
  if (owner !== null) for (const path of [folder, data, passwordFile]) chownSync(path, owner.uid, owner.gid);
  const words = ["-D", data, "-U", "postgres", "-A", "scram-sha-256", `--pwfile=${passwordFile}`];
  const options = { cwd: folder, env: cleanEnvironment(), ...owner };
  await promisify(execFile)(join(bin, "initdb"), [...words, "-E", "UTF8", "--locale=C", "--no-sync"], options);
  return { data, password, owner };
}

/** `isDurable`: what is acknowledged has been handed to the operating system, and outlives the server's processes. */
export function serverWords(data: string, port: number, { isDurable }: { readonly isDurable: boolean }): string[] {
  const settings = [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    "unix_socket_directories=",
    "max_connections=150",
    "shared_buffers=32MB",
    "fsync=off",
    "full_page_writes=off",
    `synchronous_commit=${isDurable ? "on" : "off"}`,
  ];
  return ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts("127.0.0.1", 1);
  return port;
}

/** The user's PGHOST and its like are not for our server. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("PG"));
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}
