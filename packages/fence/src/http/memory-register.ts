import type { FenceRegister, FencedRecord, VersionedRecord } from "../guard.js";

/**
 * A register in this process alone. It forgets everything when the process ends, so a late holder gets in after a restart until a newer
 * one has been there; and it keeps one small record for each resource.
 */
export function memoryRegister<V = unknown>(): FenceRegister<V, FencedRecord<V>> {
  const records = new Map<string, VersionedRecord<V, FencedRecord<V>>>();
  return {
    read: async (resource) => records.get(resource) ?? null,
    compareAndSet: async (resource, expected, record) => {
      if ((records.get(resource)?.version ?? null) !== expected) return false;
      records.set(resource, { record, version: record });
      return true;
    },
  };
}
