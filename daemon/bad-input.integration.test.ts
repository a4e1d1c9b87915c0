/**
 * A whole daemon whose label, API server or network is bad. Whether a later pass makes up for it is seen only over
 * several passes.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Events } from '../api/kubernetes.ts';
import type { MachineConfigNodeSpec } from '../api/machine-config-node.ts';
import { imageLabels } from '../api/names.ts';
import type { DigestedPullspec } from '../api/references.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { tokenConnection } from '../cluster/connection.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { configOf, emptyConfig } from '../test/fixtures/configs.ts';
import { type CutLine, createCutLine } from '../test/fixtures/cut-line.ts';
import { CHRONY, isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, startDaemon } from '../test/fixtures/running-daemon.ts';
import { writeConfig } from '../test/fixtures/standard-content.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../test/fixtures/test-node.ts';
import { directoryNodeLayout } from '../workshop/sandbox/node/directory-host.ts';
import { readServiceRecords } from '../workshop/sandbox/node/service-recorder.ts';
import { writeTarget } from './steps/disk-work.ts';

const POLICY = `sha256:${'a'.repeat(64)}`;
const read = (node: TestNode, file: string) => readFile(path.join(node.host.root, file), 'utf8');

/** A label that would ask for `actions` where it can be read. */
const label = (node: TestNode, actions: unknown): string =>
  JSON.stringify({
    version: 1,
    policyDigest: POLICY,
    transitions: [{ config: 'rendered-1', base: node.stock, actions, causes: [] }],
  });
const restart = (service: string) => [{ type: 'Restart', service }];

const labels: readonly [string, (node: TestNode) => string][] = [
  ['of 10 MB', (node) => label(node, restart('chronyd.service')) + ' '.repeat(10_000_000)],
  ['nested a hundred thousand deep', () => `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  [
    'with actions nested ten thousand deep',
    (node) => label(node, 'deep').replace('"deep"', `${'[{"type":'.repeat(10_000)}0${'}]'.repeat(10_000)}`),
  ],
  ['that names a path for a unit', (node) => label(node, restart('../../etc/evil.service'))],
  ['with a line break in a unit', (node) => label(node, restart('a.service\nb.service'))],
  ['with an option for a unit', (node) => label(node, restart('--root=/tmp'))],
  ['with an action that is none', (node) => label(node, [{ type: 'Exec', service: 'chronyd.service' }])],
  ['that is cut off', (node) => label(node, restart('chronyd.service')).slice(0, -2)],
  ['that is empty', () => ''],
  ['whose keys are of the prototype', () => '{"__proto__":{"version":1},"constructor":1}'],
];

function build(node: TestNode, config: string, disruption: string): DigestedPullspec {
  return node.addImage([layerFile(CHRONY, `${config}\n`)], {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: disruption,
  });
}

const layered = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
  policyDigest: POLICY,
  grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
});

/** Leave to act live only. */
const live = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  ...layered(config, image),
  grant: { level: 'Live', config, image, leaseHolder: HOLDER },
});

/** Starts a daemon whose line to the API server can be cut. */
async function startOnLine(
  node: TestNode,
  first: 'whole' | 'cut' = 'whole',
): Promise<DaemonUnderTest & { readonly line: CutLine }> {
  const made = Promise.withResolvers<CutLine>();
  const daemon = await startDaemon(node, {
    clientOf: async ({ access: { url, token, caPem } }) => {
      const line = await createCutLine(url);
      if (first === 'cut') line.cut();
      made.resolve(line);
      return createApiClient(tokenConnection(line.url, token, caPem));
    },
  });
  const line = await made.promise;
  return {
    ...daemon,
    line,
    [Symbol.asyncDispose]: async () => {
      await daemon[Symbol.asyncDispose]();
      await line[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(noDirectoryNodes !== undefined)('bad input', { timeout: patience(120_000) }, () => {
  test('of a label means Reboot, says so, and changes nothing before there is leave', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    await daemon.want(layered('rendered-1', build(node, 'rendered-1', label(node, []))));
    await daemon.until('the first image', isAt('rendered-1'));
    const bootID = await node.host.bootID();
    for (const [index, [name, text]] of labels.entries()) {
      const config = `rendered-bad-${index}`;
      await daemon.want(live(config, build(node, config, text(node))));
      const { status } = await daemon.until(`the plan for a label ${name}`, (object) => {
        return object.status?.plan?.config === config;
      });
      expect(status?.plan?.actions, name).toEqual([{ type: 'Reboot' }]);
      expect(status?.plan?.source, name).toMatch(/label/);
      expect(status?.plan?.source.length, name).toBeLessThan(1_000);
    }
    expect(await node.host.bootID()).toBe(bootID);
    expect(await read(node, CHRONY)).toBe('rendered-1\n');
    expect(await readServiceRecords(directoryNodeLayout(node.dir))).not.toContainEqual(
      expect.objectContaining({ action: 'restart' }),
    );
  });

  test('of the network: an API server that is away, also at start, keeps nothing from going on later', async () => {
    await using node = await createTestNode();
    await using daemon = await startOnLine(node);
    const { line } = daemon;
    const standard = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    await daemon.want(standard('rendered-1', 'Disrupt'));
    await daemon.until('the first config', isAt('rendered-1'));
    const bootID = await node.host.bootID();
    await render(daemon, 'rendered-2', 'two\n');
    line.cut();
    await daemon.want(standard('rendered-2', 'Live'));
    await daemon.restart();
    expect(await read(node, CHRONY)).toBe('one\n');
    line.mend();
    await daemon.until('the second config', isAt('rendered-2'));
    expect(await node.host.bootID()).toBe(bootID);
    line.cut();
    await daemon.want(standard('rendered-1', 'Live'));
    line.mend();
    await daemon.until('the first config again', isAt('rendered-1'));
  });

  test('of the network: an API server that gives no answer is no failure of the daemon, nor of its node', async () => {
    await using node = await createTestNode();
    await using stack = new AsyncDisposableStack();
    const written: string[] = [];
    const lines: CutLine[] = [];
    const failedTwice = Promise.withResolvers<void>();
    let unanswered = 0;
    await using daemon = await startDaemon(node, {
      clientOf: async ({ access: { url, token, caPem } }) => {
        const line = stack.use(await createCutLine(url));
        lines.push(line);
        const byLine = createApiClient(tokenConnection(line.url, token, caPem), {
          onRequest: ({ status }) => {
            if (status === 0) unanswered += 1;
            // Each read is sent three times.
            if (unanswered === 6) failedTwice.resolve();
          },
        });
        // What the daemon writes still arrives: that it can be told is no reason to tell it.
        const direct = createApiClient(tokenConnection(url, token, caPem));
        const replaceStatus = direct.replaceStatus.bind(direct);
        const overrides: Partial<ApiClient> = {
          find: (kind, name, where) => byLine.find(kind, name, where),
          get: (kind, name, where) => byLine.get(kind, name, where),
          replaceStatus: (kind, object, where) => {
            written.push(JSON.stringify(object));
            return replaceStatus(kind, object, where);
          },
        };
        return Object.assign(direct, overrides);
      },
    });
    const standard = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    await daemon.want(standard('rendered-1'));
    await daemon.until('the plan', ({ status }) => status?.plan?.config === 'rendered-1');
    for (const line of lines) line.cut();
    // Before it begins it asks for the node's lease.
    await daemon.want(standard('rendered-1', 'Live'));
    await failedTwice.promise;
    for (const line of lines) line.mend();
    await daemon.until('the config', isAt('rendered-1'));
    expect(written.length).toBeGreaterThan(1);
    expect(written.filter((text) => /DaemonFailed|PrepareFailed/.test(text))).toEqual([]);
    const { items } = await daemon.client.list(Events, {});
    expect(items.filter(({ type }) => type === 'Warning')).toEqual([]);
  });

  test('of the network: a write that was killed is undone while the API server is away', async () => {
    await using node = await createTestNode();
    const before = await read(node, CHRONY);
    const target = writeTarget(node);
    const to = configOf({ [CHRONY]: 'half\n', '/etc/never.conf': 'never\n' });
    const halfWay = Promise.withResolvers<void>();
    const beforeStep = (step: string) => {
      if (step !== 'file /etc/never.conf') return undefined;
      halfWay.resolve();
      return new Promise<void>(() => undefined);
    };
    // As if it was killed there: it neither goes on nor undoes anything.
    writeConfig(target, { from: emptyConfig, to }, { signal: deadline(30_000), beforeStep }).catch(
      () => undefined,
    );
    await halfWay.promise;
    expect(await read(node, CHRONY)).toBe('half\n');
    await using daemon = await startOnLine(node, 'cut');
    await daemon.restart();
    expect(await read(node, CHRONY)).toBe(before);
    daemon.line.mend();
    const standard = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    await daemon.want(standard('rendered-1', 'Disrupt'));
    await daemon.until('the first config', isAt('rendered-1'));
  });
});
