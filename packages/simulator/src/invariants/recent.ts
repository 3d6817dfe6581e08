/** A map that forgets its oldest keys: what the watch remembers stays bounded however long a run is. */
export class Recent<Key, Value> {
  readonly #values = new Map<Key, Value>();
  readonly #sizeMax: number;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: Key): Value | undefined {
    return this.#values.get(key);
  }

  has(key: Key): boolean {
    return this.#values.has(key);
  }

  /** A key keeps the place of its first setting. */
  set(key: Key, value: Value): void {
    this.#values.set(key, value);
    if (this.#values.size <= this.#sizeMax) return;
    for (const oldest of this.#values.keys()) {
      this.#values.delete(oldest);
      return;
    }
  }

  clear(): void {
    this.#values.clear();
  }
}
