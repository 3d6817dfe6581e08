/** Clocks that jump or run at another rate, by libfaketime. */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Launch } from "./machine.js";
import { withPreloads } from "./preload.js";

/** Where Debian's package libfaketime, Fedora's and a build from source put it. */
function folders(): string[] {
  const multiarch = existsSync("/usr/lib") ? readdirSync("/usr/lib").filter((name) => name.endsWith("-linux-gnu")) : [];
  return [
    ...multiarch.map((name) => `/usr/lib/${name}/faketime`),
    "/usr/lib64/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
  ];
}

/** The library for programs with threads, as Node is one; null when it isn't installed. */
export function findFaketime(): string | null {
  return (
    folders()
      .map((folder) => join(folder, "libfaketimeMT.so.1"))
      .find((file) => existsSync(file)) ?? null
  );
}

/** Of a process whose wall clock can jump. Its other clocks are the machine's. */
export class WallClock {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
    this.jump(0);
  }

  preload(launch: Launch, faketime: string, clocks: string): Launch {
    return withPreloads(launch, [clocks, faketime], {
      FAKETIME_TIMESTAMP_FILE: this.#file,
      // Else a jump is seen up to 10 s later.
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    });
  }

  /** Against the machine's wall clock. */
  jump(ms: number): void {
    // In one step: the process may look at any moment.
    writeFileSync(`${this.#file}.new`, `${ms < 0 ? "-" : "+"}${(Math.abs(ms) / 1_000).toFixed(3)}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}

/** Names what looks like a file to a process with such clocks: see native/clocks.c. */
const trueClockVariable = "HOLDFAST_TRUE_CLOCK";
const trueClockPath = "/proc/holdfast-true-clock";

/** All clocks of the process, and with them its timers. It can still tell the true time, by `trueMs`. */
export function withClockRate(launch: Launch, rate: number, faketime: string, clocks: string): Launch {
  return withPreloads(launch, [clocks, faketime], { FAKETIME: `+0 x${rate}`, [trueClockVariable]: trueClockPath });
}

/** The machine's monotonic clock, as `process.hrtime` gives it to all but a process that was launched with a clock rate. */
export function trueMs(): number {
  const path = process.env[trueClockVariable];
  return Number(path === undefined ? process.hrtime.bigint() : BigInt(readFileSync(path, "utf8").trim())) / 1e6;
}
