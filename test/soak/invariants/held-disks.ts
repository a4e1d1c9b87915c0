import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { DiskLook, History } from '../history/history.ts';
import { replay } from '../history/replay.ts';
import { type Disturbances, disturbancesOfDaemon } from './disturbances.ts';
import type { Violation } from './violation.ts';

/** ms in which a daemon that nothing disturbs gives up what it is staging. */
const STOPS_WITHIN = 10_000;

/** The disk of a node whose daemon was told that somebody holds it stays as it is, until its next boot. */
export function checkHeldDisks(history: History): readonly Violation[] {
  const nodes = new Map<string, HeldNode>();
  const nodeOf = (name: string): HeldNode => {
    const node = nodes.get(name) ?? new HeldNode(name, history);
    nodes.set(name, node);
    return node;
  };
  return [...replay(history)].flatMap(({ event, before }) => {
    if (event.what === 'disk') return nodeOf(event.node).lookAt(event);
    if (event.what !== 'object' || event.object.kind !== 'MachineConfigNode') return [];
    const [object, old] = [event.object as MachineConfigNode, before as MachineConfigNode | undefined];
    const node = nodeOf(object.metadata.name);
    const found = node.reports(event.at, object, old);
    node.isTold(event.at, event.type === 'DELETED' ? undefined : object.spec.heldBy);
    return found;
  });
}

/** What a node's daemon was told, and what its disk had when it was last looked at. */
class HeldNode {
  readonly #name: string;
  readonly #disturbances: Disturbances;
  #told: { readonly since: number; readonly by: string } | undefined;
  #last: DiskLook | undefined;

  constructor(name: string, history: History) {
    this.#name = name;
    this.#disturbances = disturbancesOfDaemon(history, name);
  }

  isTold(at: number, by: string | undefined): void {
    this.#told = by === undefined ? undefined : { since: this.#told?.since ?? at, by };
  }

  lookAt(look: DiskLook): readonly Violation[] {
    const last = this.#last;
    this.#last = look;
    if (last === undefined || last.bootID !== look.bootID) return [];
    const changed = differences(last.has, look.has);
    return changed.length === 0
      ? []
      : this.#violation(last.at, look.at, `was written to (${changed.join(', ')})`);
  }

  reports(
    at: number,
    { status }: MachineConfigNode,
    before: MachineConfigNode | undefined,
  ): readonly Violation[] {
    const staged = stagedBy(status?.plan);
    const isNew = staged !== undefined && staged !== stagedBy(before?.status?.plan);
    return isNew ? this.#violation(at, at, `staged ${staged}`) : [];
  }

  /** @param from when it may have happened at the earliest. */
  #violation(from: number, at: number, what: string): readonly Violation[] {
    const told = this.#told;
    if (told === undefined || !this.#disturbances.hadQuiet(told.since, from, STOPS_WITHIN)) return [];
    const message = `node ${this.#name} ${what}, ${at - told.since} ms after it was told: ${told.by}`;
    return [{ invariant: 'held disks', at, message }];
  }
}

type Plan = NonNullable<MachineConfigNode['status']>['plan'];

function stagedBy(plan: Plan): string | undefined {
  return plan?.staged === true ? `${plan.config} ${plan.image ?? ''}`.trim() : undefined;
}

function differences(before: readonly string[], now: readonly string[]): readonly string[] {
  const [old, fresh] = [new Set(before), new Set(now)];
  return [
    ...before.filter((line) => !fresh.has(line)).map((line) => `-${line}`),
    ...now.filter((line) => !old.has(line)).map((line) => `+${line}`),
  ];
}
