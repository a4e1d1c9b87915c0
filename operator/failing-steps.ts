import { MACHINE_CONFIGURATION, SWITCH_CONFIG_MAP } from '../api/names.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { FailingSteps, type KeyedStep, TELL_WITHIN_MS, warnOfStep } from '../cluster/failing-steps.ts';
import type { WorkQueue } from '../cluster/work-queue.ts';
import { isAboutPool } from '../rollout/act/pool-failures.ts';
import type { Caches } from '../rollout/caches.ts';
import type { Membership } from '../rollout/pools/membership.ts';
import { configMapNamed } from './controllers.ts';

interface Parts {
  readonly caches: Pick<Caches, 'pools' | 'machineConfigNodes'>;
  readonly membership: Pick<Membership, 'poolOf'>;
  readonly queues: Readonly<
    Record<'pools', Pick<WorkQueue, 'addAfter'>> & Record<'policy', Pick<WorkQueue, 'add'>>
  >;
  readonly events: EventRecorder;
  /** ms since the epoch. */
  readonly now: () => number;
}

/**
 * @returns what fails in the operator; events, the pools and the MachineConfiguration say what people have to know of
 * it.
 */
export function failingStepsOf({ caches, membership, queues, events, now }: Parts): FailingSteps {
  return new FailingSteps({
    now,
    onReport: (step) => warnOfStep(events, step),
    onChange: (object) => {
      for (const { metadata } of caches.pools.list())
        if (isAboutPool({ caches, membership }, object, metadata.name))
          queues.pools.addAfter(metadata.name, TELL_WITHIN_MS);
      queues.policy.add(MACHINE_CONFIGURATION);
    },
  });
}

/** @returns what the controller of layering does, and for whom. @param namespace that Shale runs in. */
export function layeringStep(namespace: string): KeyedStep {
  return stepOfSwitch(namespace, 'doing what the layering switch asks for');
}

/** @returns what is done about the images of MachineOSBuilds that are gone. @param namespace that Shale runs in. */
export function leftImagesStep(namespace: string): KeyedStep {
  return stepOfSwitch(namespace, 'deleting the images of deleted MachineOSBuilds');
}

function stepOfSwitch(namespace: string, doing: string): KeyedStep {
  const object = configMapNamed(SWITCH_CONFIG_MAP, namespace);
  return { doing, objectOf: () => object };
}
