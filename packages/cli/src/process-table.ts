/** The processes of this machine, for finding everything that a command started. Linux: /proc; elsewhere: ps. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** The process group. */
  readonly group: number;
  /** Tells a process from a later one with the same pid. */
  readonly startedAt: string;
}

export interface ProcessTable {
  /** Zombies are left out: they run nothing. */
  rows(): readonly ProcessRow[];
  /** Its row's `startedAt`; null when it doesn't run. */
  startOf(pid: number): string | null;
  /** Whether the process was started with `variable=value` in its environment; false where that can't be seen. */
  hasVariable(pid: number, assignment: string): boolean;
}

export function processTable(platform: NodeJS.Platform = process.platform): ProcessTable {
  return platform === "linux" ? linuxTable : psTable;
}

const linuxTable: ProcessTable = {
  rows() {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.flatMap((name) => {
      const row = readStat(Number(name));
      return row === null ? [] : [row];
    });
  },
  startOf: (pid) => readStat(pid)?.startedAt ?? null,
  hasVariable(pid, assignment) {
    const environment = readProcessFile(`/proc/${pid}/environ`);
    return environment !== null && environment.split("\0").includes(assignment);
  },
};

/** Null when there is no such process, or it is a zombie. */
export function readStat(pid: number): ProcessRow | null {
  const text = readProcessFile(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The command name stands in parentheses and may hold spaces and parentheses itself: fields are counted after the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group] = fields;
  const startedAt = fields[19];
  if (state === "Z" || state === "X" || parent === undefined || group === undefined || startedAt === undefined)
    return null;
  return { pid, parent: Number(parent), group: Number(group), startedAt };
}

function readProcessFile(file: string): string | null {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return null; // it has ended, or belongs to another user
  }
}

const psTable: ProcessTable = {
  rows() {
    const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="], { encoding: "utf8" });
    return stdout.split("\n").flatMap((line) => {
      const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line);
      if (match === null || match[4]?.startsWith("Z") === true) return [];
      return [{ pid: Number(match[1]), parent: Number(match[2]), group: Number(match[3]), startedAt: match[5] ?? "" }];
    });
  },
  startOf: (pid) => psTable.rows().find((row) => row.pid === pid)?.startedAt ?? null,
  hasVariable: () => false,
};
