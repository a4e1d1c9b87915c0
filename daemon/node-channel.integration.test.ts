/** The requests that a daemon makes of an API server: which objects, how many, and never a Node. */
import { describe, expect, test } from 'vitest';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { NODE, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, noDirectoryNodes } from '../test/fixtures/test-node.ts';
import { createChanges, waitUntil } from '../workshop/sandbox/wait-until.ts';
import { noMetrics } from './steps/node-metrics.ts';

interface Asked {
  readonly verb: keyof ApiClient;
  readonly kind: string | undefined;
  readonly fieldSelector: string | undefined;
}

/** Tells what is asked of a server, when it is asked. */
function told(client: ApiClient, onCall: (asked: Asked) => void): ApiClient {
  return new Proxy(client, {
    get(inner, name: keyof ApiClient) {
      const method = inner[name] as ((...args: unknown[]) => unknown) | undefined;
      // Whether it is a promise is asked too.
      if (method === undefined) return undefined;
      return (...args: unknown[]) => {
        const [kind, options] = args as [{ kind?: string }?, { fieldSelector?: string }?];
        onCall({ verb: name, kind: kind?.kind, fieldSelector: options?.fieldSelector });
        return method.apply(inner, args);
      };
    },
  });
}

const WRITES: readonly (keyof ApiClient)[] = [
  'create',
  'replace',
  'replaceStatus',
  'patch',
  'patchStatus',
  'delete',
  'evict',
];

describe.skipIf(noDirectoryNodes !== undefined)("a daemon's channel", { timeout: patience(120_000) }, () => {
  test('is a watch of its own object and one of the settings; nothing is written when nothing has changed, and never a Node', async () => {
    await using node = await createTestNode();
    const asked: Asked[] = [];
    const ended = new AbortController();
    const changes = createChanges();
    let idles = 0;
    const untilIdle = async (work: () => Promise<void>) => {
      const before = idles;
      await work();
      await waitUntil({
        what: 'a look that finds nothing to do',
        changes,
        look: () => (idles > before ? { met: true } : { seen: '' }),
        deadlineMs: 60_000,
        signal: ended.signal,
      });
    };
    await using daemon = await startDaemon(node, {
      clientOf: async ({ client }) => told(client, (one) => asked.push(one)),
      metrics: {
        ...noMetrics,
        step: (step) => {
          if (step === 'idle') idles += 1;
          changes.notify();
        },
      },
    });
    const standard = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    await untilIdle(() => daemon.want(standard('rendered-1', 'Live')));
    await daemon.until('the config', isAt('rendered-1'));
    expect(asked.filter(({ verb, kind }) => kind === 'Node' && WRITES.includes(verb))).toEqual([]);
    const watches = asked.filter(({ verb }) => verb === 'watch' || verb === 'list');
    const asWords = watches.map(({ verb, kind, fieldSelector }) => `${verb} ${kind} ${fieldSelector}`);
    expect(asWords.toSorted()).toEqual([
      `list MachineConfigNode metadata.name=${NODE}`,
      'list MachineConfiguration metadata.name=cluster',
      `watch MachineConfigNode metadata.name=${NODE}`,
      'watch MachineConfiguration metadata.name=cluster',
    ]);

    const before = await daemon.client.get(MachineConfigNodes, NODE);
    asked.length = 0;
    // It looks at all of its node anew: at a start, and when it is given leave that it has no use for.
    await untilIdle(() => daemon.restart());
    await untilIdle(() => daemon.want(standard('rendered-1')));
    await untilIdle(() => daemon.restart());
    const writes = asked.filter(({ verb }) => WRITES.includes(verb));
    // That it has seen another generation of the spec is the one thing to tell.
    expect(writes.map(({ verb, kind }) => `${verb} ${kind}`)).toEqual(['replaceStatus MachineConfigNode']);
    const after = await daemon.client.get(MachineConfigNodes, NODE);
    const { generation: observedGeneration = 0 } = after.metadata;
    const conditions = before.status?.conditions?.map((each) => ({ ...each, observedGeneration }));
    expect(after.status).toEqual({ ...before.status, observedGeneration, conditions });
    expect(after.metadata.generation).toBe((before.metadata.generation ?? 0) + 1);
    ended.abort();
  });
});
