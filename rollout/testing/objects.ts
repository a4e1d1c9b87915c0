import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { Condition } from '../../api/object.ts';
import { defaultRolloutOptions } from '../options.ts';
import type { NodeState } from '../pools/node-state.ts';
import { type PoolSettings, poolSettings } from '../pools/pool-settings.ts';

/** Objects as the API server would hand them out, for the tests of this room. */

export const LONG_AGO = '2026-01-01T00:00:00Z';
export const REBOOT: readonly DisruptionAction[] = [{ type: 'Reboot' }];
export const RESTART: readonly DisruptionAction[] = [{ type: 'Restart', service: 'chronyd.service' }];

/** @returns an image by digest; the same text gives the same image. */
export function image(digit: string): string {
  return `registry.test:5000/os@sha256:${digit.repeat(64)}`;
}

export function condition(type: string, status: 'True' | 'False' = 'True', message = ''): Condition {
  return { type, status, reason: type, message, lastTransitionTime: LONG_AGO };
}

export function aPool(name: string, spec: Partial<MachineConfigPool['spec']> = {}): MachineConfigPool {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name, uid: `uid-${name}`, generation: 1, creationTimestamp: LONG_AGO },
    spec: {
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
      machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': name } },
      ...spec,
    },
  };
}

/** What a pool without annotations is led by. */
export function someSettings(more: Partial<PoolSettings> = {}): PoolSettings {
  return { ...poolSettings(aPool('worker'), defaultRolloutOptions), ...more };
}

export function aNode(name: string, more: Partial<Pick<Node, 'metadata' | 'spec' | 'status'>> = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: `uid-${name}`, creationTimestamp: LONG_AGO, ...more.metadata },
    spec: more.spec ?? {},
    status: more.status ?? { conditions: [condition('Ready')] },
  };
}

export function aRenderedConfig(name: string, osImageURL = ''): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, creationTimestamp: LONG_AGO },
    spec: { osImageURL },
  };
}

export function aMachineOSConfig(pool: string, build?: string): MachineOSConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSConfig',
    metadata: { name: pool },
    spec: { machineConfigPool: { name: pool }, renderedImagePushSpec: 'registry.test:5000/os:latest' },
    ...(build === undefined
      ? {}
      : {
          status: {
            machineOSBuild: {
              group: 'machineconfiguration.openshift.io',
              resource: 'machineosbuilds',
              name: build,
            },
          },
        }),
  };
}

export function aBuild(
  name: string,
  config: string,
  more: {
    readonly at?: string;
    readonly policyDigest?: string;
    readonly status?: NonNullable<MachineOSBuild['status']>;
  } = {},
): MachineOSBuild {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSBuild',
    metadata: { name, creationTimestamp: more.at ?? LONG_AGO },
    spec: {
      machineConfig: { name: config },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: 'registry.test:5000/os:x',
      ...(more.policyDigest === undefined ? {} : { policyDigest: more.policyDigest }),
    },
    ...(more.status === undefined ? {} : { status: more.status }),
  };
}

export function aSuccess(
  digit: string,
  way = 'Append',
  baseImage = 'base',
): NonNullable<MachineOSBuild['status']> {
  return {
    conditions: [condition('Succeeded')],
    digestedImagePushSpec: image(digit),
    builder: { imageBuilderType: way },
    baseImage,
  };
}

export function aMachineConfigNode(
  name: string,
  spec: Partial<MachineConfigNode['spec']> = {},
  status?: MachineConfigNode['status'],
): MachineConfigNode {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name, uid: `uid-mcn-${name}`, resourceVersion: '1' },
    spec: {
      node: { name },
      pool: { name: 'worker' },
      configVersion: { desired: 'rendered-worker-1' },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** A healthy, idle node that runs what it should. */
export function aState(name: string, more: Partial<NodeState> = {}): NodeState {
  return {
    name,
    zone: '',
    createdAt: LONG_AGO,
    controlPlane: false,
    ready: true,
    schedulable: true,
    bootAgrees: true,
    inMaintenance: false,
    obstacle: undefined,
    away: undefined,
    lease: { by: 'nobody' },
    work: { cordon: undefined, grant: undefined },
    assigned: true,
    progress: { kind: 'updated' },
    ...more,
  };
}
