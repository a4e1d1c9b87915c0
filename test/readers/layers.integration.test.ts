/** Images as skopeo copies and umoci unpacks them: programs that share no line with Shale. */

import { lstat, mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import { type AppendInput, appendBuild } from '../../builder/steps/append-build.ts';
import { readObjects } from '../../cli/change/object-files.ts';
import { readTree } from '../../daemon/files/read-tree.ts';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import { policyDigest } from '../../disruption/effective-policies.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { policiesOf } from '../../predict/objects/offline-policies.ts';
import { renderOffline } from '../../predict/objects/offline-rendering.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { pushImage, type SandboxRegistry, startRegistry } from '../../workshop/sandbox/registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';

const root = path.join(import.meta.dirname, '../..');
const signal = deadline(300_000);
const architecture = goArchitecture(process.arch);
const missing = await missingPrograms('skopeo', 'umoci');

let dir: string;
let registry: SandboxRegistry;
let base: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-readers-'));
  registry = await startRegistry(path.join(dir, 'registry'));
  base = await pushImage(registry, 'os/stock', { entries: stockImage() }, signal);
});
afterAll(async () => {
  await registry.stop();
  await rm(dir, { recursive: true });
});

describe.skipIf(missing !== undefined)(
  `independent readers${missing ?? ''}`,
  { timeout: patience(60_000) },
  () => {
    test('find every file, link and directory as the config has it', async () => {
      const rendered = await renderExamples();
      const { image } = await build('whole', rendered);
      const tree = await unpack(image, 'whole');
      const wanted = entriesOf(rendered);
      expect(wanted.length).toBeGreaterThan(10);
      for (const entry of wanted) expect(await seen(tree, entry)).toEqual(asSeen(entry));
      const release = stockImage().find(({ path: name }) => name === '/usr/lib/os-release');
      expect(release?.type === 'file' && (await readFile(path.join(tree, '/usr/lib/os-release')))).toEqual(
        release?.type === 'file' && Buffer.from(release.content),
      );
    });

    test("find nothing of a path that the config no longer owns, but the base's own version", async () => {
      const own = rendering('own', { '/etc/chrony.conf': 'ours', '/etc/only-ours': 'ours' });
      const first = await unpack((await build('first', own)).image, 'first');
      expect(await text(first, '/etc/chrony.conf')).toBe('ours');
      expect(await text(first, '/etc/only-ours')).toBe('ours');
      const second = await unpack((await build('second', rendering('none', {}))).image, 'second');
      const stock = stockImage().find(({ path: name }) => name === '/etc/chrony.conf');
      expect(stock?.type).toBe('file');
      expect(await text(second, '/etc/chrony.conf')).toBe(
        stock?.type === 'file' ? Buffer.from(stock.content).toString() : undefined,
      );
      await expect(text(second, '/etc/only-ours')).rejects.toMatchObject({ code: 'ENOENT' });
    });

    test.skipIf(noDirectoryNodes !== undefined)('see the tree that an ostree deployment has', async () => {
      const { image } = await build('deployed', await renderExamples());
      const tree = await unpack(image, 'deployed');
      await withDeployment(image, async (deployed) => {
        const usr = await readTree(path.join(deployed, 'usr'), '/usr', signal);
        const etc = await readTree(path.join(deployed, 'usr/etc'), '/etc', signal);
        // ostree keeps the image's /etc as /usr/etc, and puts the kernel's directory beside the modules it has.
        const isEtc = (name: string) => name === '/usr/etc' || name.startsWith('/usr/etc/');
        expect(new Map([...usr].filter(([name]) => !isEtc(name)))).toEqual(
          await readTree(path.join(tree, 'usr'), '/usr', signal),
        );
        expect(etc).toEqual(await readTree(path.join(tree, 'etc'), '/etc', signal));
      });
    });

    test.skipIf(noDirectoryNodes !== undefined)(
      'see file capabilities, and so does a deployment',
      async () => {
        const owner = { uid: 0, gid: 0 };
        const ping: LayerEntry = {
          type: 'file',
          path: '/usr/bin/ping',
          mode: 0o755,
          ...owner,
          content: Buffer.from('ping'),
          xattrs: { 'security.capability': CAP_NET_RAW },
        };
        const also: LayerEntry = { type: 'hardlink', path: '/usr/bin/ping4', target: '/usr/bin/ping' };
        const private_: LayerEntry = { type: 'directory', path: '/usr/bin', mode: 0o750, ...owner };
        const entries = [...stockImage().filter((entry) => entry.path !== '/usr/bin'), private_, ping, also];
        const image = await pushImage(registry, 'os/capable', { entries }, signal);
        const names = ['/usr/bin/ping', '/usr/bin/ping4'];
        const tree = await unpack(image, 'capable');
        await withDeployment(image, async (deployed) => {
          for (const [name, top] of names.flatMap((name) =>
            [tree, deployed].map((top) => [name, top] as const),
          )) {
            const { stdout } = await execa('getcap', [path.join(top, name)], { env: SBIN });
            expect(stdout).toContain('cap_net_raw=ep');
          }
          expect((await lstat(path.join(deployed, 'usr/bin'))).mode & 0o777).toBe(0o750);
        });
      },
    );

    test('read names, labels and layers as they were written', async () => {
      const { image } = await build(
        'named',
        rendering('named', {
          '/etc/größe 1%.conf': 'x',
          [`/etc/${'d'.repeat(120)}/${'f'.repeat(120)}`]: 'y',
        }),
      );
      const { stdout } = await skopeo('inspect', `docker://${image}`);
      const told = JSON.parse(stdout) as { Layers: string[]; Labels: Record<string, string>; Digest: string };
      expect(told.Layers).toHaveLength(2);
      expect(told.Labels['dev.shale.rendered-config']).toBe('rendered-worker-named');
      expect(image.endsWith(told.Digest)).toBe(true);
      const tree = await unpack(image, 'named');
      expect(await text(tree, '/etc/größe 1%.conf')).toBe('x');
      expect(await text(tree, `/etc/${'d'.repeat(120)}/${'f'.repeat(120)}`)).toBe('y');
    });
  },
);

/** cap_net_raw=ep as the kernel stores it (linux/capability.h, vfs_cap_data version 2). */
const CAP_NET_RAW = Buffer.from('0100000200200000000000000000000000000000', 'hex');
/** Where Debian has getcap(8), which an ordinary PATH need not name. */
const SBIN = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` };

/** Gives the directory of a deployment that the ostree backend made of an image, for as long as the work lasts. */
async function withDeployment(image: DigestedPullspec, work: (directory: string) => Promise<void>) {
  const hostRoot = path.join(dir, 'host');
  const certificates = path.join(hostRoot, 'etc/containers/certs.d', registry.host);
  await mkdir(certificates, { recursive: true });
  await writeFile(path.join(certificates, 'ca.crt'), registry.caPem);
  const source = registrySource({ root: hostRoot, plainHttp: new Set() });
  const node = await mkdtemp(path.join(dir, 'node-'));
  await createNode({ dir: node, name: 'reader', image, source, signal });
  try {
    const [deployment] = await listDeployments(directoryNodeLayout(node).sysroot);
    await work(deployment?.directory ?? '');
  } finally {
    await removeNode(node);
  }
}

async function renderExamples(): Promise<MachineConfig> {
  const cluster = offlineCluster(await readObjects([path.join(root, 'examples')]));
  const pool = cluster.pools.find(({ metadata }) => metadata.name === 'worker');
  const rendering = pool === undefined ? undefined : renderOffline(cluster, pool);
  if (rendering?.ok !== true) throw new Error('the examples can not be rendered');
  return rendering.rendered;
}

function rendering(name: string, files: Readonly<Record<string, string>>): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: `rendered-worker-${name}` },
    spec: {
      config: {
        ignition: { version: '3.5.0' },
        storage: {
          files: Object.entries(files).map(([file, content]) => ({
            path: file,
            mode: 0o640,
            overwrite: true,
            contents: { source: `data:,${content}` },
          })),
        },
      },
    },
  };
}

function entriesOf(rendered: MachineConfig): readonly LayerEntry[] {
  const parsed = parseNodeConfig(rendered);
  const content = parsed.ok ? layerContent(parsed.config, rendered) : undefined;
  if (content?.ok !== true) throw new Error('the config can not become a layer');
  return content.entries;
}

async function build(tag: string, rendered: MachineConfig) {
  const policies = policiesOf(offlineCluster([]), undefined);
  const input: AppendInput = {
    pool: 'worker',
    rendered,
    baseImage: base,
    pushSpec: `${registry.host}/os/worker:${tag}`,
    policies,
    policyDigest: policyDigest(policies),
    froms: [],
    architecture,
    version: '0',
    created: '1970-01-01T00:00:00Z',
  };
  return appendBuild(registry.client, input, signal);
}

function skopeo(...args: readonly string[]) {
  return execa('skopeo', [
    ...args,
    ...(args[0] === 'copy' ? ['--src-tls-verify=false'] : ['--tls-verify=false']),
  ]);
}

/** @returns the root that umoci unpacked. */
async function unpack(image: string, name: string): Promise<string> {
  const layout = path.join(dir, `${name}-oci`);
  const bundle = path.join(dir, `${name}-bundle`);
  await skopeo('copy', `docker://${image}`, `oci:${layout}:x`);
  await execa('umoci', ['unpack', '--image', `${layout}:x`, bundle]);
  return path.join(bundle, 'rootfs');
}

interface Seen {
  readonly type: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly content?: string;
  readonly target?: string;
}

async function seen(tree: string, { path: name, type }: LayerEntry): Promise<Seen> {
  const place = path.join(tree, name);
  const { mode, uid, gid } = await lstat(place);
  switch (type) {
    case 'file':
      return { type, mode: mode & 0o7777, uid, gid, content: (await readFile(place)).toString('base64') };
    case 'directory':
      return { type, mode: mode & 0o7777, uid, gid };
    case 'symlink':
      return { type, uid, gid, target: await readlink(place) };
    case 'hardlink':
      return { type };
  }
}

function asSeen(entry: LayerEntry): Seen {
  switch (entry.type) {
    case 'file': {
      const { type, mode, uid, gid, content } = entry;
      return { type, mode, uid, gid, content: Buffer.from(content).toString('base64') };
    }
    case 'directory': {
      const { type, mode, uid, gid } = entry;
      return { type, mode, uid, gid };
    }
    case 'symlink': {
      const { type, uid, gid, target } = entry;
      return { type, uid, gid, target };
    }
    case 'hardlink':
      return { type: entry.type };
  }
}

function text(tree: string, name: string): Promise<string> {
  return readFile(path.join(tree, name), 'utf8');
}

async function missingPrograms(...programs: readonly string[]): Promise<string | undefined> {
  const found = await Promise.all(
    programs.map((program) => execa(program, ['--version'], { reject: false }).then(({ failed }) => !failed)),
  );
  const absent = programs.filter((_, index) => found[index] !== true);
  return absent.length === 0 ? undefined : ` (skipped: not installed: ${absent.join(', ')})`;
}
