import { once } from 'node:events';
import { createServer } from 'node:net';
import { Pods } from '../../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { type ClusterLab, until } from './cluster-lab.ts';
import { NAMESPACE } from './install-shale.ts';
import { METADATA_ADDRESS } from './lab-network.ts';
import { PAUSE_IMAGE } from './machine-image.ts';

/** Pods that ask each other, in the places of those that NetworkPolicies are about. */

const LISTENERS = {
  /** Of somebody else. */
  stranger: { namespace: 'default', ports: [9000], labels: {} },
  /** In the builder's place. */
  builder: {
    namespace: NAMESPACE,
    ports: [8080, 9000],
    labels: { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT },
  },
  /** In the place of an engine, in which other people's commands run. */
  engine: { namespace: 'shale-builds', ports: [2376], labels: {} },
} as const;
type Listener = keyof typeof LISTENERS;

/** At METADATA_ADDRESS, where the test itself listens. */
const METADATA_PORT = 8080;

/** Who asks for what; each port is open, and asked by somebody who may. */
type Question = readonly [from: Listener, what: string];
export const ALLOWED: readonly Question[] = [
  ['stranger', 'builder:8080'],
  ['stranger', 'operator:8080'],
  ['stranger', 'metadata'],
  ['builder', 'builder:9000'],
  ['builder', 'stranger:9000'],
  ['builder', 'engine:2376'],
  ['engine', 'stranger:9000'],
];
export const REFUSED: readonly Question[] = [
  ['stranger', 'builder:9000'],
  ['stranger', 'engine:2376'],
  ['engine', 'builder:9000'],
  ['engine', 'metadata'],
];

/** Starts what listens. @returns what asks it. */
export async function startListeners(lab: ClusterLab) {
  const metadata = createServer((socket) => socket.end()).listen(METADATA_PORT, METADATA_ADDRESS);
  await once(metadata, 'listening');
  const names = Object.keys(LISTENERS) as Listener[];
  await lab.kubectl(
    ['apply', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: names.map(podOf) }),
  );
  for (const name of names) {
    const { namespace } = LISTENERS[name];
    await lab.kubectl([
      'wait',
      '-n',
      namespace,
      `pod/${podName(name)}`,
      '--for=condition=Ready',
      '--timeout=120s',
    ]);
  }
  const addresses = new Map<string, string>([['metadata', METADATA_ADDRESS]]);
  for (const { metadata: pod, status } of (await lab.client.list(Pods)).items) {
    const listener = names.find((name) => podName(name) === pod.name);
    const isOperator = pod.labels?.['app.kubernetes.io/name'] === OPERATOR_DEPLOYMENT;
    if (status?.podIP === undefined) continue;
    if (listener !== undefined) addresses.set(listener, status.podIP);
    if (isOperator) addresses.set('operator', status.podIP);
  }
  const reaches = async ([from, what]: Question) => {
    const [whom = '', port = `${METADATA_PORT}`] = what.split(':');
    // Of oneself by the loopback interface: no policy is about it.
    const address = whom === from ? '127.0.0.1' : addresses.get(whom);
    if (address === undefined) throw new Error(`no pod ${whom} has an address`);
    const ask = ['/usr/bin/busybox', 'nc', '-w', '2', address, port];
    return lab.kubectl(['exec', '-n', LISTENERS[from].namespace, podName(from), '--', ...ask]).then(
      () => true,
      () => false,
    );
  };
  return {
    /** @returns the questions that are answered, once that is as expected or a minute has passed. */
    async answered(
      questions: readonly Question[],
      expected: readonly Question[],
    ): Promise<readonly Question[]> {
      let found: readonly Question[] = [];
      await until(
        'policies are enforced as expected',
        async () => {
          const answers = await Promise.all(questions.map(reaches));
          found = questions.filter((_, index) => answers[index]);
          return JSON.stringify(found) === JSON.stringify(expected);
        },
        60_000,
      ).catch(() => undefined);
      return found;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      metadata.close();
      for (const name of names) {
        const { namespace } = LISTENERS[name];
        await lab.kubectl(['delete', 'pod', '-n', namespace, podName(name), '--grace-period=0', '--force']);
      }
    },
  };
}

const podName = (name: Listener): string => `policy-${name}`;

/** With as few rights as a pod in `shale-builds` may have. */
function podOf(name: Listener) {
  const { namespace, ports, labels } = LISTENERS[name];
  const listen = ports
    .map((port) => `/usr/bin/busybox nc -ll -p ${port} -e /usr/bin/busybox cat &`)
    .join(' ');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName(name), namespace, labels },
    spec: {
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65534 },
      containers: [
        {
          name: 'listener',
          image: PAUSE_IMAGE,
          command: ['/usr/bin/sh', '-c', `trap 'exit 0' TERM; ${listen} wait`],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}
