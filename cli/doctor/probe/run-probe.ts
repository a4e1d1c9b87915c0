import { setTimeout as delay } from 'node:timers/promises';
import { type Pod, Pods } from '../../../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, DAEMON_SET } from '../../../api/names.ts';
import type { NewObject } from '../../../api/object.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { ApiError } from '../../../cluster/api-client.ts';
import { RESTRICTED_CONTAINER } from '../../../opt-in/builder-deployment.ts';
import { note } from '../../command-line/output.ts';
import { type Finding, findings, parseReport } from '../finding.ts';
import type { RegistryTarget } from '../registry-targets.ts';

/** ms to schedule the pod, pull its image and run it. */
const DEADLINE_MS = 120_000;
const POLL_MS = 500;
/** ms to delete the pod, also after Ctrl-C. */
const DELETE_MS = 10_000;

/** Runs a probe's pod and always deletes it. @returns its findings, or a finding that explains why there are none. */
export async function runProbe(client: ApiClient, probe: Probe, signal: AbortSignal): Promise<Finding[]> {
  const { namespace, name, place } = probe;
  const { warning } = findings(`registries, from ${formatPlace(place)}`);
  try {
    await client.create(Pods, probePod(probe), { namespace, signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [
      warning(
        `the probe pod can't be created: ${error.message}`,
        `you need permission to create and delete pods in ${namespace}`,
      ),
    ];
  }
  try {
    const ended = await untilEnded(client, probe, signal);
    const report = parseReport(messageOf(ended) ?? '');
    if (report !== undefined) return [...report];
    const why = ended === undefined ? 'was deleted' : formatPodState(ended);
    const fix = `check why the pod did not run: kubectl -n ${namespace} get events --field-selector involvedObject.name=${name}`;
    return [warning(`pod ${name} ${why} and reported no findings`, fix)];
  } finally {
    await client
      .delete(Pods, name, { namespace, gracePeriodSeconds: 0, signal: AbortSignal.timeout(DELETE_MS) })
      .catch((error: unknown) => {
        note(`warning: pod ${namespace}/${name} could not be deleted: ${String(error)}`);
      });
  }
}

/** @returns the last state of the pod; undefined when it was deleted. */
async function untilEnded(
  client: ApiClient,
  { namespace, name }: Probe,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const pod = await client.find(Pods, name, { namespace, signal });
    const isOver = pod === undefined || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');
    if (isOver || performance.now() >= deadline) return pod;
    await delay(POLL_MS, undefined, { signal });
  }
}

function messageOf(pod: Pod | undefined): string | undefined {
  return pod?.status?.containerStatuses?.[0]?.state?.terminated?.message;
}

function formatPodState({ status }: Pod): string {
  const { waiting, terminated } = status?.containerStatuses?.[0]?.state ?? {};
  if (terminated !== undefined) return `ended with exit code ${terminated.exitCode}`;
  const why = waiting?.reason ?? status?.reason;
  return `is ${status?.phase ?? 'Pending'}${why === undefined ? '' : ` (${why})`}`;
}

/** Where a probe runs: in the pod network like the builder, or in the host network like the tools of a node. */
export type ProbePlace =
  /** `account`: of the builder, or of the operator before there is a builder. `node`: where its pod runs now. */
  | { readonly kind: 'builder'; readonly account: string; readonly node?: string | undefined }
  | { readonly kind: 'node'; readonly node: string };

export interface Probe {
  readonly place: ProbePlace;
  readonly name: string;
  readonly namespace: string;
  /** The image of Shale's processes. */
  readonly image: string;
  readonly targets: readonly RegistryTarget[];
  readonly plainHttp: readonly string[];
}

/** The default terminationMessagePath. */
const TERMINATION_LOG = '/dev/termination-log';
/** s after which the kubelet ends the pod when the command that created it no longer runs. */
const DEADLINE_S = 120;

/** On every probe, to find probes that were left behind. */
const probeLabels = { 'app.kubernetes.io/component': 'shale-probe' } as const;

/** @returns where it runs, for the report. */
export function formatPlace(place: ProbePlace): string {
  return place.kind === 'builder' ? 'the builder' : `node ${place.node}`;
}

/**
 * A pod that runs `shale registry-probe` in the place of the builder or of a node: with the permissions of that process
 * and in its network. It reports its findings in its termination message.
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
            ...['registry-probe', '--from', formatPlace(place), '--namespace', namespace],
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

/** With the builder's labels, NetworkPolicies for the builder apply to its probe. */
function labelsOf(place: ProbePlace): Readonly<Record<string, string>> {
  return place.kind === 'builder' ? { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT } : {};
}

function specOf(place: ProbePlace): Omit<Pod['spec'], 'containers'> {
  switch (place.kind) {
    case 'builder':
      return {
        serviceAccountName: place.account,
        nodeName: place.node,
        tolerations: [
          { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
        ],
      };
    case 'node':
      // bootc, rpm-ostree and the daemon pull in the host network and with the host's DNS.
      return {
        serviceAccountName: DAEMON_SET,
        nodeName: place.node,
        hostNetwork: true,
        dnsPolicy: 'Default',
        tolerations: [{ operator: 'Exists' }],
      };
  }
}
