/** The file by which a run speaks to the preloaded library of a process: numbers of 32 bits, in the order of native/disk-faults.c. */
import { closeSync, mkdirSync, openSync, readSync, realpathSync, writeFileSync, writeSync } from "node:fs";
import { endianness } from "node:os";
import type { Launch } from "./machine.js";
import { withPreloads } from "./preload.js";

/** What is said ... */
const orders = ["syncDelayMs", "isSyncFailing", "isFull"] as const;
/** ... and what is counted. */
const counters = ["slowed", "failed", "refused"] as const;

type DiskOrder = (typeof orders)[number];
export type DiskCounter = (typeof counters)[number];

const numberBytes = 4;

export class DiskControl {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
    writeFileSync(file, Buffer.alloc(numberBytes * (orders.length + counters.length)));
  }

  preload(launch: Launch, library: string): Launch {
    // The process may be about to make it; the library asks for its true path.
    mkdirSync(launch.directory, { recursive: true });
    return withPreloads(launch, [library], {
      HOLDFAST_DISK_CONTROL: this.#file,
      HOLDFAST_DISK_DIRECTORY: realpathSync(launch.directory),
      // What goes to the kernel by its ring goes past every library.
      UV_USE_IO_URING: "0",
    });
  }

  set(order: DiskOrder, value: number): void {
    const bytes = Buffer.alloc(numberBytes);
    if (endianness() === "LE") bytes.writeUInt32LE(value);
    else bytes.writeUInt32BE(value);
    const file = openSync(this.#file, "r+");
    try {
      writeSync(file, bytes, 0, numberBytes, numberBytes * orders.indexOf(order));
    } finally {
      closeSync(file);
    }
  }

  count(counter: DiskCounter): number {
    const bytes = Buffer.alloc(numberBytes);
    const file = openSync(this.#file, "r");
    try {
      readSync(file, bytes, 0, numberBytes, numberBytes * (orders.length + counters.indexOf(counter)));
    } finally {
      closeSync(file);
    }
    return endianness() === "LE" ? bytes.readUInt32LE() : bytes.readUInt32BE();
  }
}
