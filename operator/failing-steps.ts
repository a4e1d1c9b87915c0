import { type Node, Nodes } from '../api/kubernetes.ts';
import { FLEETLOCK_SLOTS_CONFIG_MAP, MACHINE_CONFIGURATION, SWITCH_CONFIG_MAP } from '../api/names.ts';
import type { EventRecorder } from '../cluster/events.ts';
import {
  FailingSteps,
  type KeyedStep,
  type StepObject,
  TELL_WITHIN_MS,
  warnOfStep,
} from '../cluster/failing-steps.ts';
import type { WorkQueue } from '../cluster/work-queue.ts';
import { isAboutPool } from '../rollout/act/pool-failures.ts';
import type { Caches } from '../rollout/caches.ts';
import type { Membership } from '../rollout/pools/membership.ts';

interface Parts {
  readonly caches: Caches;
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

/**
 * @param namespace that Shale runs in.
 * @returns for each controller of rollout/ what a key of it stands for, and what is done about it.
 */
export function stepsOfControllers(caches: Caches, namespace: string) {
  const node = (name: string): StepObject => caches.nodes.get(name) ?? nodeNamed(name);
  const pool = (name: string) => caches.pools.get(name);
  const configuration = (): StepObject =>
    caches.machineConfigurations.get(MACHINE_CONFIGURATION) ?? {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: MACHINE_CONFIGURATION },
    };
  return {
    pools: { doing: 'leading its rollout', objectOf: pool },
    finish: { doing: 'finishing its update', objectOf: node },
    rendering: { doing: 'rendering its MachineConfigs', objectOf: pool },
    services: {
      doing: 'generating the MachineConfigs of KubeletConfigs and ContainerRuntimeConfigs',
      objectOf: configuration,
    },
    policy: { doing: 'reporting the disruption policies in effect', objectOf: configuration },
    certificates: { doing: 'telling it its certificates', objectOf: node },
    pinnedImages: { doing: 'telling it the images to keep', objectOf: node },
    annotations: { doing: "setting MCO's annotations on it", objectOf: node },
    fleetLock: {
      doing: 'giving back slots of lock services',
      objectOf: () => configMapNamed(FLEETLOCK_SLOTS_CONFIG_MAP, namespace),
    },
    departed: { doing: 'cleaning it up after it left its pool', objectOf: node },
  } as const satisfies Readonly<Record<string, KeyedStep>>;
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

function configMapNamed(name: string, namespace: string): StepObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } };
}

function nodeNamed(name: string): Pick<Node, 'apiVersion' | 'kind' | 'metadata'> {
  return { apiVersion: 'v1', kind: Nodes.kind, metadata: { name } };
}
