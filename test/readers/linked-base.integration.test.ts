/**
 * Images on a base as distributions have it, with links to directories and directories that not everybody may read, as
 * umoci unpacks them: it follows the OCI text, and so do Podman, Docker and Shale's own merge
 * (daemon/os/ostree/merge-layer.ts).
 */
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { nodePaths } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { appendBuild } from '../../builder/steps/append-build.ts';
import { extractLayer } from '../../daemon/os/ostree/extract-layer.ts';
import { mergeLayer } from '../../daemon/os/ostree/merge-layer.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { describeImage } from '../../image/append.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { linkedBase, pushLayers } from '../fixtures/registry/linked-base.ts';

const signal = deadline(300_000);
const policies = effectivePolicies(undefined, defaultPolicySettings);

let dir: string;
let registry: DockerRegistry;
let client: RegistryClient;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'linked-base-'));
  registry = await startDockerRegistry({ dir });
  client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  await pushLayers(client, `${registry.host}/os/linked:1`, linkedBase, signal);
});
afterAll(async () => {
  await registry.stop();
  await rm(dir, { recursive: true });
});

interface IgnitionNode {
  readonly path: string;
  readonly mode?: number;
  readonly user?: { readonly name?: string; readonly id?: number };
  readonly group?: { readonly name?: string; readonly id?: number };
}

interface Storage {
  readonly files?: readonly IgnitionNode[];
  readonly directories?: readonly IgnitionNode[];
}

async function build(name: string, { files = [], directories = [] }: Storage): Promise<DigestedPullspec> {
  const contents = { source: 'data:,ours' };
  const rendered: MachineConfig = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: `rendered-worker-${name}` },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: files.map((file) => ({ contents, ...file })), directories },
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A'] }] },
      },
    },
  };
  const { image } = await appendBuild(
    client,
    {
      pool: 'worker',
      rendered,
      baseImage: `${registry.host}/os/linked:1`,
      pushSpec: `${registry.host}/os/worker:${name}`,
      policies,
      policyDigest: policyDigest(policies),
      froms: [],
      architecture: 'amd64',
      version: '0',
      created: '1970-01-01T00:00:00Z',
    },
    signal,
  );
  return image;
}

async function unpack(image: string, name: string): Promise<string> {
  const layout = path.join(dir, `${name}-oci`);
  const bundle = path.join(dir, `${name}-bundle`);
  await execa('skopeo', ['copy', '--src-tls-verify=false', `docker://${image}`, `oci:${layout}:x`]);
  await execa('umoci', ['unpack', '--image', `${layout}:x`, bundle]);
  return path.join(bundle, 'rootfs');
}

/** @returns the tree that a node with ostree alone makes of an image before it is committed. */
async function merge(image: string, name: string): Promise<string> {
  const reference = parseReference(image);
  const { manifest, config } = await describeImage(client, reference, 'amd64', signal);
  const tree = path.join(dir, `${name}-merged`);
  await mkdir(tree);
  for (const [index, blob] of manifest.layers.entries()) {
    const diffId = config.rootfs.diff_ids[index];
    if (diffId === undefined) throw new Error('a layer has no diffID');
    const layer = path.join(dir, `${name}-layer-${index}`);
    await mkdir(layer);
    const items = readLayer(client.readBlob(reference, blob, signal), { ...blob, diffId }, signal);
    const { notes } = await extractLayer(items, layer, signal);
    await mergeLayer(layer, notes, tree, signal);
  }
  return tree;
}

/**
 * @returns the tree that libostree makes of an image's layers, as bootc and rpm-ostree have it put them on one another.
 */
async function union(image: string, name: string): Promise<string> {
  const reference = parseReference(image);
  const { manifest } = await describeImage(client, reference, 'amd64', signal);
  const [repo, tree] = [path.join(dir, `${name}-repo`), path.join(dir, `${name}-union`)];
  await execa('ostree', [`--repo=${repo}`, 'init', '--mode=bare']);
  for (const [index, blob] of manifest.layers.entries()) {
    const file = path.join(dir, `${name}-${index}.tar.gz`);
    await writeFile(file, client.readBlob(reference, blob, signal));
    const commit = ['commit', `--branch=layer-${index}`, `--tree=tar=${file}`, '--tar-autocreate-parents'];
    await execa('ostree', [`--repo=${repo}`, ...commit]);
    const whiteouts = index === 0 ? [] : ['--whiteouts'];
    await execa('ostree', [`--repo=${repo}`, 'checkout', '--union', ...whiteouts, `layer-${index}`, tree]);
  }
  return tree;
}

/** @returns every path of a tree with its type, mode, owner and target. */
async function listing(tree: string, below = ''): Promise<ReadonlyMap<string, string>> {
  const lines = new Map<string, string>();
  for (const name of (await readdir(path.join(tree, below))).sort()) {
    const at = path.posix.join(below, name);
    const place = path.join(tree, at);
    const stats = await lstat(place);
    const owner = `${stats.uid}:${stats.gid}`;
    if (stats.isSymbolicLink()) lines.set(`/${at}`, `link ${owner} ${await readlink(place)}`);
    else if (stats.isDirectory()) {
      lines.set(`/${at}`, `directory ${(stats.mode & 0o7777).toString(8)} ${owner}`);
      for (const [path_, line] of await listing(tree, at)) lines.set(path_, line);
    } else lines.set(`/${at}`, `file ${(stats.mode & 0o7777).toString(8)} ${owner}`);
  }
  return lines;
}

/** Of a difference: what the image has otherwise or more than its base, and what it has no more. */
async function onBase(image: string, name: string) {
  const base = await listing(await unpack(`${registry.host}/os/linked:1`, `${name}-base`));
  const made = await listing(await unpack(image, name));
  const carried = [...made].filter(([at]) => /^\/usr\/share(\/shale.*)?$|^\/etc\/ssh(\/.*)?$/.test(at));
  return {
    changed: Object.fromEntries(
      [...made].filter(([at, line]) => base.get(at) !== line && !carried.some(([c]) => c === at)),
    ),
    gone: [...base.keys()].filter((at) => !made.has(at)),
  };
}

describe('an image on a base with links and private directories', { timeout: patience(60_000) }, () => {
  test('adds its files where the links lead, and leaves every directory and link as it is', async () => {
    const image = await build('added', {
      files: [
        { path: '/etc/NetworkManager/system-connections/bond0.nmconnection', mode: 0o600 },
        { path: '/etc/sudoers.d/ops', mode: 0o440 },
        { path: '/etc/audit/rules.d/50.rules', mode: 0o600 },
        { path: '/etc/grafana/x.ini', group: { name: 'grafana' } },
        { path: '/etc/polkit-1/rules.d/60-ops.rules', user: { name: 'polkitd' } },
        { path: '/etc/init.d/legacy', mode: 0o755 },
        { path: '/etc/ssl/certs/example-ca.pem' },
        { path: '/usr/lib64/tool', mode: 0o755, user: { name: 'polkitd' } },
        { path: '/sbin/x', mode: 0o755 },
        { path: '/usr/lib/tmpfiles.d/ours.conf' },
      ],
    });
    expect(await onBase(image, 'added')).toEqual({
      gone: [],
      changed: {
        '/etc/NetworkManager/system-connections/bond0.nmconnection': 'file 600 0:0',
        '/etc/audit/rules.d/50.rules': 'file 600 0:0',
        '/etc/grafana/x.ini': 'file 644 0:472',
        '/etc/pki/tls/certs/example-ca.pem': 'file 644 0:0',
        '/etc/polkit-1/rules.d/60-ops.rules': 'file 644 998:0',
        '/etc/rc.d/init.d/legacy': 'file 755 0:0',
        '/etc/sudoers.d/ops': 'file 440 0:0',
        '/usr/bin/x': 'file 755 0:0',
        '/usr/lib/tmpfiles.d/ours.conf': 'file 644 0:0',
        '/usr/lib/tool': 'file 755 998:0',
      },
    });
  });

  test('has a directory of the config as the config says, also in the place of a link', async () => {
    const image = await build('directories', {
      directories: [
        { path: '/etc/sudoers.d', mode: 0o700, user: { id: 5 } },
        { path: '/etc/ssl/certs', mode: 0o711 },
      ],
      files: [{ path: '/etc/ssl/certs/example-ca.pem' }],
    });
    expect(await onBase(image, 'directories')).toEqual({
      gone: [],
      changed: {
        '/etc/ssl/certs': 'directory 711 0:0',
        '/etc/ssl/certs/example-ca.pem': 'file 644 0:0',
        '/etc/sudoers.d': 'directory 700 5:0',
        [nodePaths.tmpfiles]: 'file 644 0:0',
      },
    });
  });

  test('is the same tree on a node with ostree alone', async () => {
    const image = await build('merged', {
      directories: [{ path: '/etc/ssl/certs', mode: 0o711 }],
      files: [
        { path: '/etc/ssl/certs/example-ca.pem' },
        { path: '/etc/init.d/legacy' },
        { path: '/etc/audit/rules.d/50.rules' },
        { path: '/sbin/x' },
      ],
    });
    // ostree keeps an image's /etc as /usr/etc.
    const merged = [...(await listing(await merge(image, 'merged')))].map(
      ([at, line]) => [at.replace(/^\/usr\/etc(?=\/|$)/, '/etc'), line] as const,
    );
    expect(new Map(merged)).toEqual(await listing(await unpack(image, 'merged')));
  });

  test('is the same tree by libostree, but for directories that a second layer changes', async () => {
    const image = await build('union', {
      directories: [
        { path: '/etc/ssl/certs', mode: 0o711 },
        { path: '/etc/file' },
        { path: '/etc/sudoers.d', mode: 0o711 },
      ],
      files: [
        { path: '/etc/empty' },
        { path: '/etc/file/x' },
        { path: '/etc/ssl/certs/example-ca.pem' },
        { path: '/etc/init.d/legacy' },
        { path: '/etc/audit/rules.d/50.rules' },
        { path: '/sbin/x' },
      ],
    });
    const [ostree, oci] = [
      await listing(await union(image, 'union')),
      await listing(await unpack(image, 'union')),
    ];
    const other = [...oci].filter(([at, line]) => ostree.get(at) !== line).map(([at]) => at);
    // The base's own second layer, and a directory of the config, whose mode a tmpfiles.d line sets.
    expect(other).toEqual(['/etc/NetworkManager/system-connections', '/etc/sudoers.d']);
    expect([...ostree.keys()].filter((at) => !oci.has(at))).toEqual([]);
    expect(await readFile(path.join(dir, 'union-bundle/rootfs', nodePaths.tmpfiles), 'utf8')).toContain(
      'z /etc/sudoers.d 0711 0 0',
    );
  });

  test('is not built where a file would delete a directory, or has no place', async () => {
    const refused = build('refused', {
      files: [
        { path: '/etc/polkit-1/rules.d' },
        { path: '/usr/bin/keepme/x' },
        { path: '/usr/lib64/a' },
        { path: '/usr/lib/a' },
      ],
    });
    await expect(refused).rejects.toMatchObject({
      reason: 'NotLayerable',
      message: expect.stringMatching(
        /^No image can carry rendered-worker-refused: \/etc\/polkit-1\/rules\.d: is a directory .*; \/usr\/bin\/keepme\/x: lies below .*; \/usr\/lib\/a: is the same place as \/usr\/lib64\/a /,
      ),
    });
  });
});
