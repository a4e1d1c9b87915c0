/** What is left on a disk when a config is taken out, in both modes: nothing that it brought. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
} from '../../api/machine-config-node.ts';
import { annotations, imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { degraded, isAt } from '../fixtures/node-configs.ts';
import { patience } from '../fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../fixtures/test-node.ts';

/** What a rendered config has. */
type Storage = Readonly<Record<string, readonly object[]>>;

const POLICY = `sha256:${'a'.repeat(64)}`;
const text = (at: string, contents: string, more: object = {}) => ({
  path: at,
  mode: 0o644,
  overwrite: true,
  contents: { source: `data:,${contents}` },
  ...more,
});
const good: Storage = { files: [text('/var/lib/app/conf', 'good'), text('/etc/app.conf', 'good')] };

function rendered(name: string, storage: Storage): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.4.0' }, storage } },
  } as MachineConfig;
}

/** A node with its daemon, and what it may be told to run. */
class Course {
  readonly node: TestNode;
  readonly daemon: DaemonUnderTest;

  constructor(node: TestNode, daemon: DaemonUnderTest) {
    this.node = node;
    this.daemon = daemon;
  }

  /**
   * Makes a config known to the cluster, and its image as the builder does. @param more of the base, in the image
   * alone.
   */
  async build(name: string, storage: Storage, more: readonly LayerItem[] = []): Promise<DigestedPullspec> {
    const object = rendered(name, storage);
    await this.daemon.client.create(MachineConfigs, object);
    const parsed = parseNodeConfig(object);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    const content = layerContent(parsed.config, object);
    if (!content.ok) throw new Error(JSON.stringify(content.refusals));
    return this.node.addImage([...content.entries, ...more], {
      [imageLabels.renderedConfig]: name,
      [imageLabels.baseImage]: this.node.stock,
    });
  }

  async run(config: string, image?: DigestedPullspec): Promise<void> {
    const target = { config, ...(image === undefined ? {} : { image }) };
    const spec: Partial<MachineConfigNodeSpec> = {
      configVersion: { desired: config },
      imageSigningKeys: 'Disabled',
      policyDigest: POLICY,
      grant: { level: 'Disrupt', ...target, leaseHolder: HOLDER },
      ...(image === undefined ? { osImage: this.node.stock } : { configImage: { desiredImage: image } }),
    };
    await this.daemon.want(spec);
  }

  async until(what: string, holds: (object: MachineConfigNode) => boolean): Promise<MachineConfigNode> {
    return this.daemon.until(what, holds);
  }

  at(name: string): string {
    return path.join(this.node.host.root, name);
  }

  read(name: string): Promise<string | undefined> {
    return readFile(this.at(name), 'utf8').catch(() => undefined);
  }
}

/** How a config is no good on a node, and what is left of it. */
interface Bad {
  readonly storage: Storage;
  readonly prepare?: (course: Course) => Promise<void>;
  readonly image?: readonly LayerItem[];
  /** What the node's owner reads; of which condition or reason. */
  readonly says: RegExp;
  readonly reboots: boolean;
}

const bad: Readonly<Record<string, Bad>> = {
  'with an owner that no node knows': {
    storage: {
      files: [...(good['files'] ?? []), text('/etc/svc.conf', 'x', { user: { name: 'nosuchuser' } })],
    },
    says: /\/etc\/svc\.conf: user nosuchuser is neither in .* nor in/,
    reboots: false,
  },
  'with a link where the node has a directory with data': {
    storage: { ...good, links: [{ path: '/var/lib/isdir', target: 'app' }] },
    prepare: async (course) => {
      await mkdir(course.at('/var/lib/isdir'), { recursive: true });
      await writeFile(course.at('/var/lib/isdir/data'), 'data');
    },
    says: /\/var\/lib\/isdir: is a directory with \/var\/lib\/isdir\/data in it/,
    reboots: false,
  },
  'below what is a file on the node': {
    storage: { files: [...(good['files'] ?? []), text('/var/lib/isfile/conf', 'x')] },
    prepare: (course) => writeFile(course.at('/var/lib/isfile'), 'data'),
    says: /\/var\/lib\/isfile is no directory/,
    reboots: false,
  },
  'with a file whose mode the base sets at boot': {
    storage: { files: [text('/var/lib/app/conf', 'bad'), text('/var/lib/closed', 'x')] },
    image: [layerFile('/usr/lib/tmpfiles.d/zz-base.conf', 'z /var/lib/close[d] 0600\n')],
    says: /The update to rendered-bad did not bring all of its content\. \/var\/lib\/closed: has mode 0600/,
    reboots: true,
  },
};

/** What the node's owner can do, and the config that the node then runs. */
const ways: Readonly<Record<string, (course: Course, first: DigestedPullspec) => Promise<string>>> = {
  'deleting the MachineConfig': async (course, first) => {
    await course.run('rendered-good', first);
    return 'rendered-good';
  },
  'another config': async (course) => {
    await course.run('rendered-next', await course.build('rendered-next', good));
    return 'rendered-next';
  },
  'switching layering off': async (course) => {
    await course.run('rendered-good');
    return 'rendered-good';
  },
};

const reported = ({ status }: MachineConfigNode): string =>
  (status?.conditions ?? []).map(({ message }) => message).join('\n');

describe.skipIf(noDirectoryNodes !== undefined)(
  'a node whose config is no good',
  { timeout: patience(240_000) },
  () => {
    test.for(
      Object.entries(bad).flatMap(([name, each]) =>
        Object.keys(ways).map((way) => [name, way, each] as const),
      ),
    )('%s goes on after %s', async ([, way, { storage, prepare, image = [], says, reboots }]) => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const course = new Course(node, daemon);
      const first = await course.build('rendered-good', good);
      await course.run('rendered-good', first);
      await course.until('the first config', isAt('rendered-good'));
      expect([await course.read('/var/lib/app/conf'), await course.read('/etc/app.conf')]).toEqual([
        'good',
        'good',
      ]);
      await prepare?.(course);
      const bootID = await node.host.bootID();
      await course.run('rendered-bad', await course.build('rendered-bad', storage, image));
      await course.until('what is wrong', (object) => says.test(reported(object)));
      expect((await node.host.bootID()) !== bootID).toBe(reboots);
      const config = await ways[way]?.(course, first);
      const object = await course.until('what frees the node', isAt(config ?? ''));
      expect(degraded(object)).toBeUndefined();
      expect([await course.read('/var/lib/app/conf'), await course.read('/etc/app.conf')]).toEqual([
        'good',
        'good',
      ]);
      expect(await course.read('/var/lib/isdir/data')).toBe(
        prepare === undefined || says.source.includes('isfile') ? undefined : 'data',
      );
    });

    test('is repaired as the force file does it', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const course = new Course(node, daemon);
      const {
        storage,
        image = [],
        says,
      } = bad['with a file whose mode the base sets at boot'] ?? { storage: {}, says: / / };
      await course.run('rendered-bad', await course.build('rendered-bad', storage, image));
      await course.until('what is wrong', (object) => says.test(reported(object)));
      const request = JSON.stringify({ id: 'r-1', by: 'ann', at: '2026-01-01T00:00:00Z' });
      await daemon.client.patch(MachineConfigNodes, NODE, {
        type: 'merge',
        body: { metadata: { annotations: { [annotations.repair]: request } } },
      });
      const object = await course.until('the repaired node', isAt('rendered-bad'));
      expect(object.status?.lastUpdate).toMatchObject({ config: 'rendered-bad', result: 'Succeeded' });
      expect((await stat(course.at('/var/lib/closed'))).mode & 0o777).toBe(0o644);
    });
  },
);
