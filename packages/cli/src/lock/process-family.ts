/**
 * Everything that a command started: its process group, its descendants and the groups that these lead (`timeout` and job-control
 * shells make groups of their own), and on Linux those that left all of that but still bear the run's mark in their environment.
 */
import type { ProcessRow, ProcessTable } from "../process-table.js";

export interface FamilyOptions {
  /** The command's own pid. */
  readonly root: number;
  /** Whether the command leads a process group of its own. If not, its group is the caller's, and is never signalled as one. */
  readonly leadsGroup: boolean;
  /** "NAME=value", in the environment of the command and of what it starts, and nowhere else. */
  readonly mark: string;
}

export class ProcessFamily {
  readonly #options: FamilyOptions;
  readonly #table: ProcessTable;
  /**
   * Start times of members seen before, by pid: one whose parent has ended can't be found by descent any more, and a pid alone may
   * be another process by now.
   */
  readonly #seen = new Map<number, string>();

  constructor(options: FamilyOptions, table: ProcessTable) {
    this.#options = options;
    this.#table = table;
    const root = table.rows().find((row) => row.pid === options.root);
    if (root !== undefined) this.#seen.set(root.pid, root.startedAt);
  }

  /** The members that run now. Those that only the mark shows are looked for last: that takes a look at every process. */
  members(): readonly number[] {
    const found = this.#find(false);
    return found.length > 0 ? found : this.#find(true);
  }

  #find(looksForMark: boolean): readonly number[] {
    const rows = this.#table.rows().filter((row) => row.pid !== process.pid);
    const members = new Set<number>();
    const groups = new Set<number>(this.#options.leadsGroup ? [this.#options.root] : []);
    const join = (row: ProcessRow): void => {
      members.add(row.pid);
      if (row.group === row.pid) groups.add(row.group);
      this.#seen.set(row.pid, row.startedAt);
    };
    for (const row of rows) if (this.#seen.get(row.pid) === row.startedAt) join(row);
    this.#joinRelatives(rows, members, groups, join);
    if (!looksForMark) return [...members];
    for (const row of rows)
      if (!members.has(row.pid) && this.#table.hasVariable(row.pid, this.#options.mark)) join(row);
    this.#joinRelatives(rows, members, groups, join);
    return [...members];
  }

  /** Until nothing is added: children of members, and members of groups that a member leads. */
  #joinRelatives(
    rows: readonly ProcessRow[],
    members: ReadonlySet<number>,
    groups: ReadonlySet<number>,
    join: (row: ProcessRow) => void,
  ): void {
    for (let before = -1; before !== members.size; ) {
      before = members.size;
      for (const row of rows) {
        if (!members.has(row.pid) && (members.has(row.parent) || groups.has(row.group))) join(row);
      }
    }
  }

  /**
   * Signals all members; the command's own group in one call, so that nothing it forks meanwhile escapes. Returns those that could
   * not be signalled (another user's).
   */
  signal(name: NodeJS.Signals): readonly number[] {
    const members = this.#find(true); // before the group is hit: a killed parent takes the way to its children with it
    if (this.#options.leadsGroup) send(-this.#options.root, name);
    return members.filter((pid) => send(pid, name) === "forbidden");
  }

  /** SIGKILL to the group and to every member seen so far, before anything is searched: the lease ends now. */
  killKnown(): void {
    if (this.#options.leadsGroup) send(-this.#options.root, "SIGKILL");
    for (const [pid, startedAt] of this.#seen) if (this.#table.startOf(pid) === startedAt) send(pid, "SIGKILL");
  }
}

/** A process that has ended is no problem. */
export function send(pid: number, name: NodeJS.Signals): "sent" | "gone" | "forbidden" {
  try {
    process.kill(pid, name);
    return "sent";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM" ? "forbidden" : "gone";
  }
}
