import type { Pod } from '../../../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, DAEMON_SET } from '../../../api/names.ts';
import type { NewObject } from '../../../api/object.ts';
import { RESTRICTED_CONTAINER } from '../../../opt-in/builder-deployment.ts';
import type { RegistryTarget } from '../registry-targets.ts';

/** Where a probe runs: as the builder does, in the pod network, or as a node's tools do. */
export type ProbePlace =
  /** `account`: the builder's, or the operator's before there is a builder. `node`: where that one runs now. */
  | { readonly kind: 'builder'; readonly account: string; readonly node?: string }
  | { readonly kind: 'node'; readonly node: string };

export interface Probe {
  readonly place: ProbePlace;
  readonly name: string;
  readonly namespace: string;
  /** Shale's own, as its other processes have it. */
  readonly image: string;
  readonly targets: readonly RegistryTarget[];
  readonly plainHttp: readonly string[];
}

/** Where a kubelet reads what a container says last, unless the pod names another file. */
export const TERMINATION_LOG = '/dev/termination-log';
/** s after which a kubelet ends the pod, whoever made it being gone. */
const DEADLINE_S = 120;

/** On every probe: what was left behind is found by it. */
export const probeLabels = { 'app.kubernetes.io/component': 'shale-probe' } as const;

/** @returns where it runs, in words. */
export function placeInWords(place: ProbePlace): string {
  return place.kind === 'builder' ? 'the builder' : `node ${place.node}`;
}

/**
 * The pod that tries registries from where builder and nodes are, by `shale registry-probe`: with the rights of the
 * process that it stands for, no others, and its way through the network. It says what it found with its last message.
 */
export function probePod({ place, name, namespace, image, targets, plainHttp }: Probe): NewObject<Pod> {
  const flags = plainHttp.length === 0 ? [] : ['--plain-http', ...plainHttp];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { ...probeLabels, ...labelsOf(place) } },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: DEADLINE_S,
      terminationGracePeriodSeconds: 1,
      ...specOf(place),
      containers: [
        {
          name: 'probe',
          image,
          args: [
            ...['registry-probe', '--from', placeInWords(place), '--namespace', namespace],
            ...['--target', ...targets.map((target) => JSON.stringify(target))],
            ...flags,
            ...['--report', TERMINATION_LOG],
          ],
          resources: { requests: { cpu: '20m', memory: '64Mi' } },
          securityContext: RESTRICTED_CONTAINER,
        },
      ],
    },
  };
}

/** Policies of the network that are for the builder are for its probe, too. */
function labelsOf(place: ProbePlace): Readonly<Record<string, string>> {
  return place.kind === 'builder' ? { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT } : {};
}

function specOf(place: ProbePlace): Omit<Pod['spec'], 'containers'> {
  switch (place.kind) {
    case 'builder':
      return {
        serviceAccountName: place.account,
        ...(place.node === undefined ? {} : { nodeName: place.node }),
        tolerations: [
          { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
        ],
      };
    case 'node':
      // bootc, rpm-ostree and the daemon pull in the host's network, by the names that the host knows.
      return {
        serviceAccountName: DAEMON_SET,
        nodeName: place.node,
        hostNetwork: true,
        dnsPolicy: 'Default',
        tolerations: [{ operator: 'Exists' }],
      };
  }
}
