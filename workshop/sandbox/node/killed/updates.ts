import type { DisruptionAction } from '../../../../api/disruption-action.ts';
import type { MachineConfigNode } from '../../../../api/machine-config-node.ts';
import type { ClusterPolicies } from '../../../../api/machine-configuration.ts';
import { conditionIsTrue } from '../../../../cluster/conditions.ts';
import type { Rendered } from '../../../../daemon/records/current.ts';
import { CHRONY } from '../testing-configs.ts';

/** The updates that the daemon is killed in, and what they lead between. */

export interface TestFile {
  readonly path: string;
  readonly content: string;
  readonly mode: number;
}

/** An image of one pool: the stock image and a layer. */
export interface TestImage {
  readonly config: string;
  readonly files: readonly TestFile[];
  /** What a node takes it with from another config on the stock image. */
  readonly from: readonly { readonly config: string; readonly actions: readonly DisruptionAction[] }[];
}

export const policies: ClusterPolicies = {
  files: [{ path: CHRONY, actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }] }],
  sshkey: { actions: [{ type: 'None' }] },
};
const restart: DisruptionAction = { type: 'Restart', service: 'chronyd.service' };
/** A health check that never passes. */
const SICK: TestFile = {
  path: '/etc/shale/health.d/10-sick',
  content: '#!/bin/sh\necho no route\nexit 1\n',
  mode: 0o755,
};
const chrony = (content: string): TestFile => ({ path: CHRONY, content, mode: 0o644 });

export const testImages: readonly TestImage[] = [
  { config: 'rendered-1', files: [chrony('one\n')], from: [] },
  {
    config: 'rendered-2',
    files: [chrony('two\n'), { path: '/etc/new.d/two.conf', content: 'two\n', mode: 0o600 }],
    from: [{ config: 'rendered-1', actions: [restart] }],
  },
  {
    config: 'rendered-3',
    files: [chrony('three\n')],
    from: [{ config: 'rendered-1', actions: [{ type: 'Reboot' }] }],
  },
  {
    config: 'rendered-4',
    files: [chrony('four\n'), SICK],
    from: [{ config: 'rendered-1', actions: [{ type: 'Reboot' }] }],
  },
];

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';

/** @returns a rendered config with something of everything that standard mode writes. */
function renderedConfig(name: string, content: string, kernelArguments: string[] = []): Rendered {
  const source = `data:,${encodeURIComponent(content)}`;
  const files = [{ path: CHRONY, mode: 0o644, overwrite: true, contents: { source } }];
  const units = [{ name: 'own.service', enabled: true, contents: UNIT }];
  const users = [{ name: 'core', passwordHash: `$6$${name}`, sshAuthorizedKeys: [`ssh-ed25519 ${name}`] }];
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: { ignition: { version: '3.4.0' }, storage: { files }, systemd: { units }, passwd: { users } },
      kernelArguments,
    },
  };
}

export const renderedConfigs: readonly Rendered[] = [
  renderedConfig('rendered-1', 'one\n'),
  renderedConfig('rendered-2', 'two\n'),
  renderedConfig('rendered-3', 'three\n', ['quiet']),
  renderedConfig('rendered-5', 'five\n', ['quiet']),
  renderedConfig('rendered-6', 'six\n', ['quiet', 'panic=1']),
];

export interface Target {
  readonly mode: 'Layered' | 'Standard';
  readonly config: string;
}

/** What a node runs before an update. */
export type Start = 'stock' | 'layered' | 'standard';

/** What the starts are, but for the stock image. */
export const startTargets: Readonly<Record<Exclude<Start, 'stock'>, Target>> = {
  layered: { mode: 'Layered', config: 'rendered-1' },
  standard: { mode: 'Standard', config: 'rendered-3' },
};

export interface TestUpdate {
  readonly name: string;
  readonly from: Start;
  readonly target: Target;
  /** What chrony.conf holds in the end. */
  readonly content: string;
  readonly boots: number;
  /** Whether chronyd is restarted; where it is, being killed may make it twice. */
  readonly restarts: boolean;
  /** The boot in which it is killed, counted from 0. */
  readonly killedIn: number;
  /** Whether it ends where it began, because its target is not healthy. */
  readonly goesBack: boolean;
  /** Whether no daemon comes up in the target, so that the host goes back by itself: both boots count as one. */
  readonly hostGoesBack: boolean;
}

const live = { boots: 0, restarts: true, killedIn: 0, goesBack: false, hostGoesBack: false };
const reboots = { boots: 1, restarts: false, killedIn: 0, goesBack: false, hostGoesBack: false };
const goesBack = { boots: 2, restarts: false, goesBack: true, hostGoesBack: false };
const hostGoesBack = { restarts: false, goesBack: true, hostGoesBack: true };
const layered = (config: string): Target => ({ mode: 'Layered', config });
const standard = (config: string): Target => ({ mode: 'Standard', config });

export const testUpdates: readonly TestUpdate[] = [
  { name: 'a live change', from: 'layered', target: layered('rendered-2'), content: 'two\n', ...live },
  {
    name: 'a change that reboots',
    from: 'layered',
    target: layered('rendered-3'),
    content: 'three\n',
    ...reboots,
  },
  {
    name: 'the way into layering',
    from: 'stock',
    target: layered('rendered-1'),
    content: 'one\n',
    ...reboots,
  },
  {
    name: 'the way out of layering',
    from: 'layered',
    target: standard('rendered-3'),
    content: 'three\n',
    ...reboots,
  },
  {
    name: 'the end of the way out of layering, after its reboot',
    from: 'layered',
    target: standard('rendered-3'),
    content: 'three\n',
    ...reboots,
    killedIn: 1,
  },
  {
    name: 'the first config of standard mode',
    from: 'stock',
    target: standard('rendered-3'),
    content: 'three\n',
    ...reboots,
  },
  {
    name: 'a live change of standard mode',
    from: 'standard',
    target: standard('rendered-5'),
    content: 'five\n',
    ...live,
  },
  {
    name: 'the way back from an image that is not healthy, before its reboot',
    from: 'layered',
    target: layered('rendered-4'),
    content: 'one\n',
    ...goesBack,
    killedIn: 1,
  },
  {
    name: 'the way back from an image that is not healthy, after its reboot',
    from: 'layered',
    target: layered('rendered-4'),
    content: 'one\n',
    ...goesBack,
    killedIn: 2,
  },
  {
    name: 'the way back into standard mode',
    from: 'standard',
    target: layered('rendered-4'),
    content: 'three\n',
    ...goesBack,
    killedIn: 1,
  },
  {
    name: 'the end of an update from which the host went back by itself',
    from: 'layered',
    target: layered('rendered-3'),
    content: 'one\n',
    ...hostGoesBack,
    boots: 1,
    killedIn: 1,
  },
  {
    name: 'the end of one that left the files of standard mode behind',
    from: 'standard',
    target: standard('rendered-6'),
    content: 'three\n',
    ...hostGoesBack,
    boots: 2,
    killedIn: 1,
  },
];

/** @returns whether an update is over, by what the node says. */
export const isOver =
  ({ target, goesBack: back }: Pick<TestUpdate, 'target' | 'goesBack'>) =>
  ({ status }: MachineConfigNode): boolean =>
    back
      ? conditionIsTrue(status?.conditions, 'NodeDegraded') && status?.lastUpdate?.result === 'RolledBack'
      : conditionIsTrue(status?.conditions, 'Updated') &&
        status?.configVersion?.current === target.config &&
        status.mode === target.mode;
