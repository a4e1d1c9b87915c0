import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { lookAtRollout } from '../../workshop/sandbox/tour/rollout-look.ts';
import { type ClusterLab, MACHINES, until } from './cluster-lab.ts';

const ROLLOUT_MS = 400_000;

/** What a rollout cost the machines. */
export interface RolledOut {
  /** Boots since, by machine. */
  readonly boots: Readonly<Record<string, number>>;
  readonly seconds: number;
}

/**
 * Makes a change and waits until every node has it.
 *
 * @param act makes it; the pool's rendered config is another one then, unless `sameConfig`.
 * @throws RolloutFailed when something failed for good; Error with the progress when it isn't there in time.
 */
export async function rollOut(
  lab: ClusterLab,
  {
    mode,
    act,
    sameConfig = false,
  }: {
    readonly mode: 'Standard' | 'Layered';
    readonly act: () => Promise<unknown>;
    readonly sameConfig?: boolean;
  },
): Promise<RolledOut> {
  const began = performance.now();
  const before = lab.machines.map(({ boots }) => boots);
  const configBefore = (await lab.client.find(MachineConfigPools, 'worker'))?.spec.configuration?.name;
  await act();
  const goal = {
    pools: { worker: MACHINES.length },
    mode,
    missingInConfig: ({ spec }: MachineConfigPool) =>
      !sameConfig && spec.configuration?.name === configBefore ? 'not rendered yet' : undefined,
  };
  let progress = '';
  await until(
    `every node is ${mode} at its pool's config`,
    async () => {
      const [pools, machineConfigNodes, builds] = await Promise.all([
        lab.client.list(MachineConfigPools),
        lab.client.list(MachineConfigNodes),
        lab.client.list(MachineOSBuilds),
      ]);
      const look = lookAtRollout(goal, {
        pools: pools.items,
        machineConfigNodes: machineConfigNodes.items,
        builds: builds.items,
      });
      if ('met' in look) return true;
      if (look.seen !== progress) process.stderr.write(`${secondsSince(began)} s: ${look.seen}\n`);
      progress = look.seen;
      return look.seen;
    },
    ROLLOUT_MS,
  );
  const boots = Object.fromEntries(
    lab.machines.map(({ name, boots: now }, index) => [name, now - (before[index] ?? 0)]),
  );
  const seconds = secondsSince(began);
  process.stderr.write(`${seconds} s: done; boots ${JSON.stringify(boots)}\n`);
  return { boots, seconds };
}

function secondsSince(began: number): number {
  return Math.round((performance.now() - began) / 100) / 10;
}
