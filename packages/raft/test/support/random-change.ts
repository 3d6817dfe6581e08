/** Changes of membership as an operator may ask for them, sensible and not. */
import type { Raft } from "../../src/index.js";
import type { SeededRandom } from "./random.js";

interface ChangeIds {
  readonly add: readonly string[];
  readonly promote: readonly string[];
  readonly remove: readonly string[];
}

export function drawChange(random: SeededRandom, raft: Raft, ids: readonly string[]): ChangeIds {
  const { voters, learners, removed } = raft.configuration;
  const voterIds = voters.map((member) => member.id);
  const learnerIds = learners.map((member) => member.id);
  const fresh = ids.filter((id) => !voterIds.includes(id) && !learnerIds.includes(id) && !removed.includes(id));
  const some = (from: readonly string[], countMax: number): string[] => {
    const start = from.length === 0 ? 0 : random.integer(from.length);
    return [...from.slice(start), ...from.slice(0, start)].slice(0, random.integer(countMax + 1));
  };
  const none: readonly string[] = [];
  switch (random.integer(6)) {
    case 0:
    case 1:
      return { add: some(fresh, 2), promote: none, remove: none };
    case 2:
      return { add: none, promote: learnerIds, remove: none };
    // To another set of any size, all at once.
    case 3:
      return { add: some(fresh, 1), promote: learnerIds, remove: some(voterIds, 2) };
    case 4:
      return { add: none, promote: some(learnerIds, 2), remove: some([...voterIds, ...learnerIds], 1) };
    default:
      return { add: some([...removed, ...fresh], 1), promote: some(ids, 1), remove: some(ids, 1) };
  }
}
