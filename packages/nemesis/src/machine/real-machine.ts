/** The faults of the machine that we are on. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Party } from "../network/network.js";
import { findFaketime, WallClock, withClockRate } from "./clocks.js";
import { DiskControl } from "./disk-control.js";
import { Freezer, missingFreezer } from "./freezer.js";
import { startKeeper, waitForStarter } from "./keeper.js";
import type { Keeper } from "./keeper.js";
import { damageDirectory } from "./damage.js";
import type { Damage, DamageReport, Launch, MachineFault, MachineFaultKind, MachineFaults, Target } from "./machine.js";
import { checkFaults } from "./machine-checks.js";
import { MachineError } from "./machine-error.js";
import { buildPreload, missingPreload } from "./preload.js";
import type { Preload } from "./preload.js";
import { findDisk, SmallDisk } from "./small-disk.js";
import type { FoundDisk } from "./small-disk.js";

/** What was made for a party; it stays for all of its lives. */
interface Ready {
  control: DiskControl | null;
  disk: SmallDisk | null;
  wall: WallClock | null;
  freezer: Freezer | null;
  timesFrozen: number;
}

export class RealMachine implements MachineFaults {
  /** For libraries and control files. */
  readonly #folder: string;
  readonly #keeper: Keeper;
  readonly #parties = new Map<Party, Ready>();
  readonly #missing = new Map<MachineFaultKind, Promise<string | null>>();
  readonly #libraries = new Map<Preload, Promise<string>>();
  #disk: Promise<FoundDisk> | null = null;
  #names = 0;

  private constructor(folder: string, keeper: Keeper) {
    this.#folder = folder;
    this.#keeper = keeper;
  }

  static async open(): Promise<RealMachine> {
    const folder = newFolder();
    const keeper = await startKeeper(["sh", "-c", `${waitForStarter}\nrm -rf -- "$1"`, "sh", folder]);
    return new RealMachine(folder, keeper);
  }

  missing(kind: MachineFaultKind): Promise<string | null> {
    const known = this.#missing.get(kind) ?? this.#look(kind);
    this.#missing.set(kind, known);
    return known;
  }

  async launch(party: Party, launch: Launch, faults: readonly MachineFault[]): Promise<Launch> {
    checkFaults(faults);
    const kinds = new Set(faults.map(({ kind }) => kind));
    for (const kind of kinds) {
      const problem = await this.missing(kind);
      if (problem !== null) throw new MachineError("unavailable", `${kind}: ${problem}`);
    }
    const ready = this.#readyOrNew(party);
    let made = launch;
    if (kinds.has("diskFull")) await this.#mount(ready, launch.directory);
    if (kinds.has("diskFull") || kinds.has("slowSync") || kinds.has("failSync"))
      made = await this.#overDisk(ready, made);
    if (kinds.has("wallJump")) {
      const clock = (ready.wall ??= new WallClock(this.#file("wall-clock")));
      made = clock.preload(made, faketime(), await this.#library("clocks"));
    }
    for (const fault of faults) {
      if (fault.kind !== "clockRate") continue;
      made = withClockRate(made, fault.rate, faketime(), await this.#library("clocks"));
    }
    return made;
  }

  async begin({ party, pid }: Target, fault: MachineFault): Promise<void> {
    checkFaults([fault]);
    const ready = this.#readyOrNew(party);
    switch (fault.kind) {
      case "diskFull":
        return ready.disk === null ? controlOf(ready, party).set("isFull", 1) : ready.disk.fill();
      case "slowSync":
        return controlOf(ready, party).set("syncDelayMs", fault.ms);
      case "failSync":
        return controlOf(ready, party).set("isSyncFailing", 1);
      case "frozen":
        return this.#freeze(ready, pid);
      case "wallJump":
        return wallOf(ready, party).jump(fault.ms);
      case "clockRate":
        return;
    }
  }

  async end({ party }: Target, kind: MachineFaultKind): Promise<void> {
    const ready = this.#readyOrNew(party);
    switch (kind) {
      case "diskFull":
        ready.disk?.free();
        return ready.control?.set("isFull", 0);
      case "slowSync":
        return ready.control?.set("syncDelayMs", 0);
      case "failSync":
        return ready.control?.set("isSyncFailing", 0);
      case "frozen":
        return ready.freezer?.thaw();
      case "wallJump":
        return ready.wall?.jump(0);
      case "clockRate":
        return;
    }
  }

  bites(party: Party, kind: MachineFaultKind): Promise<number | null> {
    const { control, timesFrozen } = this.#parties.get(party) ?? nothingReady();
    const counts: Readonly<Record<MachineFaultKind, () => number | null>> = {
      diskFull: () => control?.count("refused") ?? null,
      slowSync: () => control?.count("slowed") ?? null,
      failSync: () => control?.count("failed") ?? null,
      frozen: () => timesFrozen,
      wallJump: () => null,
      clockRate: () => null,
    };
    return Promise.resolve(counts[kind]());
  }

  damage(directory: string, damage: Damage): Promise<DamageReport> {
    return Promise.resolve(damageDirectory(directory, damage));
  }

  async close(): Promise<void> {
    const parties = [...this.#parties.values()];
    this.#parties.clear();
    for (const { control, disk, freezer } of parties) {
      for (const order of ["syncDelayMs", "isSyncFailing", "isFull"] as const) control?.set(order, 0);
      await freezer?.remove();
      await disk?.unmount();
    }
    await this.#keeper.end();
  }

  async #look(kind: MachineFaultKind): Promise<string | null> {
    switch (kind) {
      case "diskFull": {
        const disk = await this.#findDisk();
        const preload = await missingPreload(this.#folder);
        return disk.kind === null && preload !== null ? `${disk.missing}; ${preload}` : null;
      }
      case "slowSync":
      case "failSync":
        return missingPreload(this.#folder);
      case "frozen":
        return missingFreezer(this.#groupName());
      case "wallJump":
      case "clockRate":
        if (findFaketime() === null) return "libfaketime is not installed (Debian: apt-get install libfaketime)";
        return missingPreload(this.#folder);
    }
  }

  #findDisk(): Promise<FoundDisk> {
    return (this.#disk ??= findDisk(newFolder));
  }

  async #mount(ready: Ready, directory: string): Promise<void> {
    const { kind } = await this.#findDisk();
    if (ready.disk !== null || kind === null) return;
    ready.disk = await SmallDisk.mount(kind, newFolder(), directory);
  }

  /** A disk that is really full works without a compiler, too: then nobody counts. */
  async #overDisk(ready: Ready, launch: Launch): Promise<Launch> {
    if ((await missingPreload(this.#folder)) !== null) return launch;
    ready.control ??= new DiskControl(this.#file("disk"));
    return ready.control.preload(launch, await this.#library("disk-faults"));
  }

  async #freeze(ready: Ready, pid: number): Promise<void> {
    const freezer = (ready.freezer ??= await Freezer.make(this.#groupName()));
    await freezer.freeze(pid);
    ready.timesFrozen += 1;
  }

  #library(name: Preload): Promise<string> {
    const built = this.#libraries.get(name) ?? buildPreload(name, this.#folder);
    this.#libraries.set(name, built);
    return built;
  }

  /** Any process can be frozen, one that was never launched here too. */
  #readyOrNew(party: Party): Ready {
    const ready = this.#parties.get(party) ?? nothingReady();
    this.#parties.set(party, ready);
    return ready;
  }

  #file(name: string): string {
    this.#names += 1;
    return join(this.#folder, `${name}-${this.#names}`);
  }

  #groupName(): string {
    this.#names += 1;
    return `holdfast-${process.pid}-${this.#names}`;
  }
}

function nothingReady(): Ready {
  return { control: null, disk: null, wall: null, freezer: null, timesFrozen: 0 };
}

function controlOf({ control }: Ready, party: Party): DiskControl {
  if (control === null)
    throw new MachineError("bad_argument", `party ${party} was launched without faults of its disk`);
  return control;
}

function wallOf({ wall }: Ready, party: Party): WallClock {
  if (wall === null) throw new MachineError("bad_argument", `party ${party} was launched without jumps of its clock`);
  return wall;
}

function faketime(): string {
  const library = findFaketime();
  if (library === null) throw new MachineError("unavailable", "libfaketime has been removed meanwhile");
  return library;
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "holdfast-machine-"));
}
