/**
 * `node bench/live-apply.ts`: what a changed file costs a node that takes it live: seconds from the MachineConfigNode
 * that names the image to the status that says Updated, bytes of the image that were fetched, and what the daemon asks
 * of the API server, for an update and while nothing happens. A directory node on real ostree; needs root. The aims are
 * 12 requests for an update and 15 for an idle hour, the watch aside.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { imageLabels } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { encodeTransitionLabel } from '../disruption/transitions.ts';
import { isAt } from '../test/fixtures/node-configs.ts';
import { HOLDER, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes } from '../test/fixtures/test-node.ts';

const POLICY = `sha256:${'a'.repeat(64)}`;
const UPDATES = 10;
const IDLE_MS = 60_000;
const HOUR_MS = 3_600_000;

if (noDirectoryNodes !== undefined) throw new Error(noDirectoryNodes);

await using node = await createTestNode();
const requests: string[] = [];
await using daemon = await startDaemon(node, {
  clientOf: async ({ client }) => counted(client, (verb) => requests.push(verb)),
});

const first = imageOf('rendered-0', undefined);
await daemon.want({ ...target('rendered-0', first), ...grant('rendered-0', first, 'Disrupt') });
await daemon.until('the first image', isAt('rendered-0'));

const samples: { readonly stage: number; readonly apply: number; readonly requests: number }[] = [];
for (let update = 1; update <= UPDATES; update += 1) {
  const config = `rendered-${update}`;
  const image = imageOf(config, `rendered-${update - 1}`);
  requests.length = 0;
  const start = performance.now();
  await daemon.want(target(config, image));
  await daemon.until('the plan', isStaged(config));
  const staged = performance.now();
  await daemon.want({ ...target(config, image), ...grant(config, image, 'Live') });
  await daemon.until('the image', isAt(config));
  samples.push({ stage: staged - start, apply: performance.now() - staged, requests: requests.length });
}
const lastUpdate = counts(requests);
requests.length = 0;
await delay(IDLE_MS);
const idle = requests.filter((verb) => verb !== 'watch').length;

const median = (pick: (sample: (typeof samples)[number]) => number) =>
  samples.map(pick).toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0;
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table({
  'staged, ms after the target is named': Math.round(median(({ stage }) => stage)),
  'Updated, ms after the grant': Math.round(median(({ apply }) => apply)),
  'requests of an update': median(({ requests: count }) => count),
  'requests of an idle hour': (idle * HOUR_MS) / IDLE_MS,
});
process.stdout.write(`the requests of the last update: ${lastUpdate}\n`);

function imageOf(config: string, from: string | undefined) {
  const actions = [{ type: 'Restart' as const, service: 'chronyd.service' }];
  const transitions = from === undefined ? [] : [{ config: from, base: node.stock, actions, causes: [] }];
  return node.addImage([layerFile('/etc/chrony.conf', `# ${config}\n`)], {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: encodeTransitionLabel({ version: 1, policyDigest: POLICY, transitions }),
  });
}

function target(config: string, image: ReturnType<typeof imageOf>) {
  return {
    configVersion: { desired: config },
    configImage: { desiredImage: image },
    imageSigningKeys: 'Disabled',
    policyDigest: POLICY,
  };
}

function grant(config: string, image: ReturnType<typeof imageOf>, level: 'Live' | 'Disrupt') {
  return { grant: { level, config, image, leaseHolder: HOLDER } };
}

function isStaged(config: string) {
  return ({ status }: MachineConfigNode) => status?.plan?.config === config && status.plan.staged;
}

/** Reports every request by its verb; a watch counts when it starts. */
function counted(client: ApiClient, onRequest: (verb: string) => void): ApiClient {
  return new Proxy(client, {
    get(inner, name, receiver) {
      const method: unknown = Reflect.get(inner, name, receiver);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        const kind = (args[0] as { readonly plural?: string } | undefined)?.plural;
        onRequest(String(name) === 'watch' ? 'watch' : `${String(name)} ${kind ?? ''}`.trim());
        return Reflect.apply(method, inner, args);
      };
    },
  });
}

function counts(verbs: readonly string[]): string {
  const found = new Map<string, number>();
  for (const verb of verbs) found.set(verb, (found.get(verb) ?? 0) + 1);
  return [...found].map(([verb, count]) => `${count} ${verb}`).join(', ');
}
