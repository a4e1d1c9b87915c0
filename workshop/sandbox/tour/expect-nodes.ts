import { formatActions } from '../../../api/disruption-action.ts';
import { POOLS, type RolledOut, type RolledOutNode } from './roll-out.ts';
import type { TourContext } from './step.ts';

/** What the steps expect of nodes, each said once. They throw CheckFailed. */

/** Every node took the change by these actions, such as `Restart(chronyd.service)`. */
export function expectActions(tour: TourContext, { nodes }: RolledOut, actions: string): void {
  const taken = nodes.map(({ name, object }) => [
    name,
    formatActions(object.status?.lastUpdate?.actions ?? []),
  ]);
  tour.check(
    `every node performed ${actions}`,
    taken.every(([, done]) => done === actions),
    Object.fromEntries(taken),
  );
}

/** Every node booted once since. */
export function expectOneReboot(tour: TourContext, { nodes }: RolledOut): void {
  tour.check(
    'every node rebooted once',
    nodes.every(({ before, after }) => after.bootCount === before.bootCount + 1),
    perNode(nodes, ({ before, after }) => after.bootCount - before.bootCount),
  );
}

/** No node booted since. */
export function expectNoReboot(tour: TourContext, { nodes }: RolledOut): void {
  tour.check(
    'no node rebooted: the boot ids are the same',
    nodes.every(({ before, after }) => after.bootID === before.bootID),
    perNode(nodes, ({ before, after }) => `${before.bootID} -> ${after.bootID}`),
  );
}

/** maxUnavailable of the pools is 1, and no drain violated the sample workload's budget. */
export function expectOneAtATime(tour: TourContext, { disturbance }: RolledOut): void {
  tour.check(
    'at most one node of a pool was cordoned or unavailable at a time',
    Object.keys(POOLS).every((pool) => (disturbance.unavailable[pool] ?? 0) <= 1),
    disturbance.unavailable,
  );
  tour.check(
    'the drains respected the PodDisruptionBudget',
    disturbance.fewestReadyPods >= 2,
    disturbance.fewestReadyPods,
  );
}

/** No node was cordoned, drained or away. */
export function expectNoDisturbance(tour: TourContext, { disturbance }: RolledOut): void {
  tour.check(
    'no node was cordoned or drained',
    Object.values(disturbance.unavailable).every((count) => count === 0),
    disturbance.unavailable,
  );
}

/** Every node's running root has the text in the file. */
export async function expectRunningText(
  tour: TourContext,
  { nodes }: RolledOut,
  file: string,
  text: string,
): Promise<void> {
  const contents = await Promise.all(nodes.map(({ after }) => after.running(file)));
  tour.check(
    `${file} contains ${JSON.stringify(text)} on every running node`,
    contents.every((content) => content?.includes(text)),
    contents,
  );
}

/** Units that a node's service manager was asked to restart or reload since, with the boot they ran in. */
export function servicesSince({ before, after }: RolledOutNode) {
  return after.services
    .slice(before.services.length)
    .filter(({ action }) => action === 'restart' || action === 'reload');
}

function perNode(
  nodes: readonly RolledOutNode[],
  value: (node: RolledOutNode) => unknown,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(nodes.map((node) => [node.name, value(node)]));
}
