import { type DisruptionAction, isDisruptive } from '../../api/disruption-action.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { defaultRolloutOptions } from '../options.ts';
import { decidePool } from '../pools/decide-pool.ts';
import { type LeaseHolding, progressOf } from '../pools/node-state.ts';
import type { NodeStep } from '../pools/node-step.ts';
import { assignedSpec } from '../pools/node-target.ts';
import { aMachineConfigNode, aNode, aPool, condition, someSettings } from './objects.ts';

export interface Weather {
  readonly nodes: number;
  readonly maxUnavailable: number;
  readonly plans: readonly ('Reboot' | 'Drain' | 'Live')[];
  readonly happenings: readonly { readonly node: number; readonly what: Happening }[];
}

export type Happening =
  | 'nothing'
  | 'daemon'
  | 'steal-lease'
  | 'return-lease'
  | 'expire-lease'
  | 'not-ready'
  | 'ready'
  | 'pause'
  | 'unpause'
  | 'kill-operator'
  | 'new-target';

export interface SimulationEnd {
  /** What never may be, and was. */
  readonly violations: readonly string[];
  /** Nodes that the rollout left behind in some way. */
  readonly unfinished: readonly string[];
}

interface Machine {
  readonly name: string;
  readonly plan: readonly DisruptionAction[];
  cordoned: boolean;
  mark: string | undefined;
  ready: boolean;
  drained: boolean;
  lease: LeaseHolding;
  spec: MachineConfigNodeSpec;
  current: string;
  staged: string | undefined;
}

const PLANS: Readonly<Record<Weather['plans'][number], readonly DisruptionAction[]>> = {
  Reboot: [{ type: 'Reboot' }],
  Drain: [{ type: 'Drain' }, { type: 'Reload', service: 'crio.service' }],
  Live: [{ type: 'Restart', service: 'chronyd.service' }],
};

/** Enough calm rounds for eight nodes to go one after another: each takes a handful. */
const CALM_ROUNDS = 200;

/**
 * A pool's whole rollout in memory: the real decider over a model of nodes and daemons. A step is cut short where the
 * operator is killed, and everything that is not in an object is forgotten, as it would be.
 */
export function simulate(weather: Weather): SimulationEnd {
  const machines = Array.from({ length: weather.nodes }, (_, index) =>
    newMachine(`node-${index}`, PLANS[weather.plans[index] ?? 'Reboot']),
  );
  const world = { target: 1, paused: false, killed: false };
  const violations: string[] = [];
  const look = () => {
    decideAndAct(machines, world, weather.maxUnavailable);
    violations.push(...violationsIn(machines, weather.maxUnavailable));
  };
  for (const { node, what } of weather.happenings) {
    const machine = machines[node % machines.length];
    if (machine !== undefined) happen(machine, what, world, violations);
    look();
  }
  world.paused = false;
  for (const machine of machines) {
    machine.ready = true;
    if (machine.lease.by === 'other') machine.lease = { by: 'nobody' };
  }
  for (let round = 0; round < CALM_ROUNDS; round += 1) {
    for (const machine of machines) runDaemon(machine, violations);
    look();
  }
  const unfinished = machines
    .filter((machine) => machine.current !== `rendered-worker-${world.target}` || isTouched(machine))
    .map(({ name, current, cordoned, mark, lease, spec }) =>
      JSON.stringify({ name, current, cordoned, mark, lease, grant: spec.grant }),
    );
  return { violations, unfinished };
}

function newMachine(name: string, plan: readonly DisruptionAction[]): Machine {
  return {
    name,
    plan,
    cordoned: false,
    mark: undefined,
    ready: true,
    drained: false,
    lease: { by: 'nobody' },
    spec: aMachineConfigNode(name, { configVersion: { desired: 'rendered-worker-0' } }).spec,
    current: 'rendered-worker-0',
    staged: undefined,
  };
}

function isTouched({ cordoned, mark, lease, spec }: Machine): boolean {
  return cordoned || mark !== undefined || lease.by === 'us' || spec.grant !== undefined;
}

interface World {
  target: number;
  paused: boolean;
  killed: boolean;
}

function happen(machine: Machine, what: Happening, world: World, violations: string[]): void {
  switch (what) {
    case 'nothing':
      return;
    case 'daemon':
      runDaemon(machine, violations);
      return;
    case 'steal-lease':
      machine.lease = { by: 'other', holder: 'thief' };
      return;
    case 'return-lease':
    case 'expire-lease':
      machine.lease = { by: 'nobody' };
      return;
    case 'not-ready':
    case 'ready':
      machine.ready = what === 'ready';
      return;
    case 'pause':
    case 'unpause':
      world.paused = what === 'pause';
      return;
    case 'kill-operator':
      world.killed = true;
      return;
    case 'new-target':
      world.target += 1;
  }
}

/** Stages without asking; acts under a sufficient grant for its target while the lease is the operator's. */
function runDaemon(machine: Machine, violations: string[]): void {
  const { desired } = machine.spec.configVersion;
  if (machine.current === desired) return;
  if (machine.staged !== desired) {
    machine.staged = desired;
    return;
  }
  const { grant } = machine.spec;
  const disruptive = isDisruptive(machine.plan);
  if (grant?.config !== desired || (disruptive && grant.level === 'Live') || machine.lease.by !== 'us')
    return;
  if (disruptive && !(machine.cordoned && machine.drained))
    violations.push(`${machine.name} was disrupted without cordon and drain`);
  machine.current = desired;
  machine.staged = undefined;
}

function decideAndAct(machines: readonly Machine[], world: World, maxUnavailable: number): void {
  const target = { kind: 'standard', target: { config: `rendered-worker-${world.target}` } } as const;
  const pool = aPool('worker', { maxUnavailable, paused: world.paused });
  const nodes = machines.map((machine) => ({
    node: nodeOf(machine),
    machineConfigNode: objectOf(machine),
    lease: machine.lease,
    inMaintenance: false,
    machineDeleting: false,
  }));
  const settings = someSettings({ failureThreshold: { unproven: 99, proven: 99 } });
  const seen = { pool, settings, target, policyDigest: undefined, nodes };
  const decision = decidePool(seen, defaultRolloutOptions, 0);
  for (const machine of machines) {
    const assignment = decision.assign.get(machine.name);
    if (assignment !== undefined) machine.spec = assignedSpec(machine.spec, assignment);
    for (const act of actsOf(decision.steps.get(machine.name))) {
      act(machine);
      if (world.killed) {
        world.killed = false;
        return;
      }
    }
  }
}

/** A step as the single writes that NodeWork makes of it, in its order: a kill may fall between any two. */
function actsOf(step: NodeStep | undefined): readonly ((machine: Machine) => void)[] {
  switch (step?.kind) {
    case undefined:
    case 'none':
      return [];
    case 'take':
      return step.level === 'Live' ? [hold, grant('Live')] : [hold, cordon, drain, grant('Disrupt')];
    case 'drain':
      return [hold, drain, grant('Disrupt')];
    case 'hold':
      return [hold];
    case 'finish':
    case 'back-out':
      return [withdraw, uncordon, release];
    case 'let-go':
      return [withdraw, release];
    case 'suspend':
      return [withdraw];
  }
}

const hold = (machine: Machine) => {
  if (machine.lease.by === 'nobody') machine.lease = { by: 'us' };
};
const cordon = (machine: Machine) => {
  machine.mark ??= String(!machine.cordoned);
  machine.cordoned = true;
};
const drain = (machine: Machine) => {
  machine.drained = true;
};
const grant = (level: 'Live' | 'Disrupt') => (machine: Machine) => {
  const config = machine.spec.configVersion.desired;
  machine.spec = { ...machine.spec, grant: { level, config, leaseHolder: 'shale-operator' } };
};
const withdraw = (machine: Machine) => {
  const { grant: _withdrawn, ...rest } = machine.spec;
  machine.spec = rest;
};
const uncordon = (machine: Machine) => {
  if (machine.mark === 'true') machine.cordoned = false;
  machine.mark = undefined;
  machine.drained = false;
};
const release = (machine: Machine) => {
  if (machine.lease.by === 'us') machine.lease = { by: 'nobody' };
};

function violationsIn(machines: readonly Machine[], maxUnavailable: number): string[] {
  const disrupted = machines.filter(({ mark }) => mark !== undefined);
  return disrupted.length <= maxUnavailable
    ? []
    : [`${disrupted.length} nodes disrupted, ${maxUnavailable} allowed`];
}

function nodeOf({ name, cordoned, mark, ready }: Machine): Node {
  return aNode(name, {
    metadata: {
      name,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(mark === undefined ? {} : { annotations: { [annotations.cordonedByShale]: mark } }),
    },
    spec: { unschedulable: cordoned },
    status: { conditions: [condition('Ready', ready ? 'True' : 'False')] },
  });
}

function objectOf({ name, spec, current, staged, plan }: Machine): MachineConfigNode {
  const status: MachineConfigNode['status'] = {
    mode: 'Standard',
    configVersion: { current, desired: spec.configVersion.desired },
    conditions: [condition('Updated')],
    ...(staged === undefined
      ? {}
      : { plan: { config: staged, staged: true, actions: [...plan], causes: [], source: 'simulated' } }),
  };
  const object = aMachineConfigNode(name, spec, status);
  // The daemon says Updated only of what it runs.
  return progressOf(spec, status).kind === 'updated' || current !== spec.configVersion.desired
    ? object
    : aMachineConfigNode(name, spec, { ...status, conditions: [] });
}
