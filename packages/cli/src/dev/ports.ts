/** Which of a cluster's ports are taken, and by whom. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { CommandFailure } from "../command-failure.js";
import { readStat } from "../process-table.js";

export interface PortAddress {
  readonly host: string;
  readonly port: number;
}

export interface TakenPort extends PortAddress {
  /** Null when the system doesn't say: another user's process, or no tool to ask. */
  readonly pid: number | null;
}

/** Tries to listen on each, and lets go again. */
export async function takenPorts(addresses: readonly PortAddress[]): Promise<readonly TakenPort[]> {
  const taken: TakenPort[] = [];
  for (const { host, port } of addresses) {
    if (await isTaken(host, port)) taken.push({ host, port, pid: ownerOf(port) });
  }
  return taken;
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(true);
      else reject(new CommandFailure("portInUse", "port_in_use", `can't listen on ${host}:${port}: ${error.message}`));
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(false)));
  });
}

/** The `holdfast dev` that started this process; null when none did, or the system doesn't say. */
export function clusterOf(pid: number): number | null {
  const parent = process.platform === "linux" ? (readStat(pid)?.parent ?? null) : null;
  const words =
    parent === null ? [] : (orNull(() => readFileSync(`/proc/${parent}/cmdline`, "utf8")) ?? "").split("\0");
  return words.includes("dev") && words.some((word) => /holdfast(\.js)?$/.test(word)) ? parent : null;
}

/** The process that listens on a TCP port. */
function ownerOf(port: number): number | null {
  return process.platform === "linux" ? ownerByProc(port) : ownerByLsof(port);
}

const listening = "0A";

function ownerByProc(port: number): number | null {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const sockets = new Set<string>();
  for (const file of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const line of lines(file)) {
      const fields = line.trim().split(/\s+/);
      if (fields[1]?.endsWith(`:${hexPort}`) === true && fields[3] === listening) sockets.add(`socket:[${fields[9]}]`);
    }
  }
  if (sockets.size === 0) return null;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const owner = pids.find((pid) => linksIn(`/proc/${pid}/fd`).some((link) => sockets.has(link)));
  return owner === undefined ? null : Number(owner);
}

function lines(file: string): readonly string[] {
  return orNull(() => readFileSync(file, "utf8").split("\n")) ?? []; // no IPv6, say
}

function linksIn(folder: string): readonly string[] {
  const names = orNull(() => readdirSync(folder)) ?? []; // it has ended, or belongs to another user
  return names.flatMap((name) => orNull(() => readlinkSync(`${folder}/${name}`)) ?? []); // closed meanwhile
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

function ownerByLsof(port: number): number | null {
  const { stdout } = spawnSync("lsof", ["-nP", `-iTCP:${port}`, "-sTCP:LISTEN", "-t"], { encoding: "utf8" });
  const pid = Number(/^\d+/.exec(stdout ?? "")?.[0]);
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}
