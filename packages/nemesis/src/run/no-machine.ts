/** A machine that lets no fault be put under a process. */
import type { DamageReport, Launch, MachineFaults } from "../machine/machine.js";
import type { Party } from "../network/network.js";

export class NoMachine implements MachineFaults {
  missing(): Promise<string | null> {
    return Promise.resolve("not on this machine");
  }

  launch(_party: Party, launch: Launch): Promise<Launch> {
    return Promise.resolve(launch);
  }

  begin(): Promise<void> {
    return Promise.reject(new Error("not on this machine"));
  }

  end(): Promise<void> {
    return Promise.resolve();
  }

  bites(): Promise<number | null> {
    return Promise.resolve(null);
  }

  damage(): Promise<DamageReport> {
    return Promise.reject(new Error("not on this machine"));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
