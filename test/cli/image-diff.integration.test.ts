/** Two images in a registry, compared as a user does: packages, units, exit codes, requests. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { createGzip } from 'node:zlib';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ImageDiffOutput, PlanOutput } from '../../cli/command-line/output-schemas.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { baseFile, pushLayers } from '../fixtures/registry/linked-base.ts';
import { shale } from './shale-process.ts';

const signal = deadline(300_000);

async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), 'image-diff-'));
  const registry = await startDockerRegistry({ dir });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  const push = async (tag: string, layers: readonly (readonly LayerEntry[])[]) => {
    await pushLayers(client, `${host}/os/base:${tag}`, layers, signal);
    return `${host}/os/base:${tag}`;
  };
  const diff = (from: string, to: string, ...args: string[]) =>
    shale(['image', 'diff', from, to, '--plain-http', host, '--architecture', 'amd64', ...args]);
  return { dir, host, client, push, diff };
}

const stanza = (name: string, version: string) =>
  `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: ${version}\n\n`;
const status = (...packages: (readonly [string, string])[]) =>
  baseFile('/var/lib/dpkg/status', packages.map(([name, version]) => stanza(name, version)).join(''));
const link = (at: string, target: string): LayerEntry => ({
  type: 'symlink',
  path: at,
  target,
  uid: 0,
  gid: 0,
});

const noReports = (from: string, to: string) => [
  'vulnerabilities: unknown, no report for either image',
  `no report of vulnerabilities for ${from}`,
  `no report of vulnerabilities for ${to}`,
];

const before: readonly LayerEntry[] = [
  status(['chrony', '4.3-2'], ['libc6', '2.36-9+deb12u14'], ['telnet', '0.17']),
  baseFile('/usr/lib/os-release', 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'),
  baseFile('/usr/lib/modules/6.12.9/vmlinuz'),
  baseFile('/usr/lib/bootc/kargs.d/10-a.toml', 'kargs = ["quiet"]\n'),
  baseFile('/usr/lib/systemd/system/telnet.socket'),
  link('/etc/systemd/system/sockets.target.wants/telnet.socket', '/usr/lib/systemd/system/telnet.socket'),
  baseFile('/etc/passwd', 'root:x:0:0::/root:/bin/sh\nchrony:x:101:101::/:/bin/false\n'),
];
const after: readonly LayerEntry[] = [
  status(['chrony', '4.6.1-3'], ['libc6', '2.36-9+deb12u14'], ['nftables', '1.1.3-1']),
  baseFile('/usr/lib/os-release', 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n'),
  baseFile('/usr/lib/modules/6.12.14/vmlinuz'),
  baseFile('/usr/lib/systemd/system/nftables.service'),
  link(
    '/etc/systemd/system/sysinit.target.wants/nftables.service',
    '/usr/lib/systemd/system/nftables.service',
  ),
  baseFile('/etc/passwd', 'root:x:0:0::/root:/bin/sh\nchrony:x:998:998::/:/bin/false\n'),
];

test('two base images: packages, kernel, arguments, units and users, and a summary', async () => {
  const { push, diff } = await setUp();
  const [from, to] = [await push('12', [before]), await push('13', [after])];
  const { stdout, stderr, exitCode } = await diff(from, to);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(`of ${from}: 100 %`);
  expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, '  '))).toEqual([
    'Debian GNU/Linux 12 (bookworm) -> Debian GNU/Linux 13 (trixie), 3 packages (1 added, 1 removed, 1 upgraded), kernel 6.12.9 -> 6.12.14, 1 kernel argument, 1 unit enabled, 1 unit no longer enabled, 1 user or group with another number, reboot',
    '',
    'CHANGE  PACKAGE  VERSION',
    'removed  telnet  0.17',
    'added  nftables  1.1.3-1',
    'upgraded  chrony  4.3-2 -> 4.6.1-3',
    '',
    'CHANGE  WHAT  NAME',
    'removed  kernel  6.12.9',
    'added  kernel  6.12.14',
    'removed  kernel argument  quiet',
    'removed  unit  telnet.socket',
    'enabled  unit  nftables.service',
    'changed  user  chrony (101 -> 998): its files keep the owner 101',
    '',
    ...noReports(from, to),
  ]);
  const json = ImageDiffOutput.parse(JSON.parse((await diff(from, to, '-o', 'json')).stdout));
  expect(json).toMatchObject({
    from: { packages: 3, kernels: ['6.12.9'], platform: 'linux/amd64' },
    baseChanges: true,
    packages: [
      { change: 'upgraded', name: 'chrony', format: 'dpkg', from: '4.3-2', to: '4.6.1-3' },
      { change: 'added', name: 'nftables' },
      { change: 'removed', name: 'telnet' },
    ],
    unknown: [],
  });
  const markdown = await diff(from, to, '-o', 'markdown');
  expect(markdown.stdout).toContain('| upgraded | chrony | 4.3-2 -> 4.6.1-3 |');
});

test('images with the same contents exit with 0, and the layers that they share are read once', async () => {
  const { push, diff } = await setUp();
  const one = await push('1', [before]);
  const same = await push('2', [before, [baseFile('/usr/share/doc/x', 'no package')]]);
  const { stdout, stderr, exitCode } = await diff(one, same);
  expect([exitCode, stdout.split('\n')]).toEqual([
    0,
    ['no difference in packages, kernel, units or users, reboot', '', ...noReports(one, same)],
  ]);
  expect(stderr.match(/Reading 1 layer .*: 0 %/g)).toHaveLength(2);
  expect((await diff(one, one)).exitCode).toBe(0);
});

test('what can not be read is named, and is no reason to call images equal', async () => {
  const { push, diff } = await setUp();
  const [first, ...others] = before;
  const unread = await push('1', [[baseFile('/var/lib/rpm/Packages.db', 'RpmP'), ...others]]);
  const also = await push('2', [[baseFile('/var/lib/rpm/Packages.db', 'RpmP2'), ...others]]);
  expect(first?.path).toBe('/var/lib/dpkg/status');
  const { stdout, stderr, exitCode } = await diff(unread, also);
  expect(exitCode).toBe(2);
  expect(stdout).toContain(`not compared: ${unread}: /var/lib/rpm/Packages.db is in RPM's ndb format`);
  expect(stderr).toContain('not everything could be compared');
  const bare = await push('3', [[baseFile('/x')]]);
  const missing = await diff(bare, bare);
  expect([missing.exitCode, missing.stdout]).toEqual([2, expect.stringContaining('has no package database')]);
});

test('an image whose layer has another diffID is refused', async () => {
  const { host, client, push, diff } = await setUp();
  const honest = await push('1', [before]);
  const raw = await client.getManifest(parseReference(honest), signal);
  const manifest = JSON.parse(Buffer.from(raw.bytes).toString());
  const lie = {
    architecture: 'amd64',
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: [digestOf(Buffer.from('x'))] },
  };
  const config = Buffer.from(JSON.stringify(lie));
  const at = parseReference(`${host}/os/base:lie`);
  await client.putBlob(at, config, signal);
  const bytes = Buffer.from(
    JSON.stringify({
      ...manifest,
      config: { ...manifest.config, digest: digestOf(config), size: config.length },
    }),
  );
  await client.putManifest(at, { mediaType: raw.mediaType, bytes }, signal);
  const { stdout, stderr, exitCode } = await diff(honest, `${host}/os/base:lie`);
  expect([exitCode, stdout]).toEqual([69, '']);
  expect(stderr).toContain('has the diffID');
});

test('of two images of Shale the files of their rendered configs are compared, too', async () => {
  const { dir, host, push, diff } = await setUp();
  const base = await push('1', [before]);
  const build = async (tag: string, text: string) => {
    const file = path.join(dir, `${tag}.yaml`);
    const source = `data:,${text}`;
    await writeFile(
      file,
      JSON.stringify({
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineConfig',
        metadata: { name: '99-x', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
        spec: {
          config: {
            ignition: { version: '3.4.0' },
            storage: { files: [{ path: '/etc/x', contents: { source } }] },
          },
        },
      }),
    );
    const run = await shale([
      ...[
        'build',
        '--pool',
        'worker',
        '-f',
        'examples',
        file,
        '--plain-http',
        host,
        '--architecture',
        'amd64',
      ],
      ...['--base', base, '--push', `${host}/os/worker:${tag}`],
    ]);
    expect(run.stderr).not.toContain('error');
    return run.stdout;
  };
  const { stdout, exitCode } = await diff(await build('a', 'one'), await build('b', 'two'));
  expect([exitCode, stdout.split('\n')[0]]).toEqual([1, 'no difference in packages, kernel, units or users']);
  expect(stdout).toMatch(/changed +config's file +\/etc\/x/);
});

test('a plan names the packages of a new base image, and says where it can not be read', async () => {
  const { dir, host, push } = await setUp();
  const [from, to] = [await push('12', [before]), await push('13', [after])];
  const config = async (name: string, baseImage: string) => {
    const file = path.join(dir, `${name}.yaml`);
    const spec = {
      machineConfigPool: { name: 'worker' },
      imageBuilder: { imageBuilderType: 'Job' },
      baseImage,
      renderedImagePushSpec: `${host}/os/worker:latest`,
      renderedImagePushSecret: { name: 'push' },
    };
    const object = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineOSConfig',
      metadata: { name: 'worker' },
      spec,
    };
    await writeFile(file, JSON.stringify(object));
    return file;
  };
  const plan = async (baseImage: string, ...args: string[]) =>
    shale([
      ...['plan', '--from', 'examples', await config('before', from), '-f', await config('after', baseImage)],
      ...['--plain-http', host, ...args],
    ]);
  const { stdout } = await plan(to, '--packages');
  expect(stdout).toContain(
    'base image: Debian GNU/Linux 12 (bookworm) -> Debian GNU/Linux 13 (trixie), 3 packages',
  );
  expect(stdout).toContain('  base image: upgraded chrony 4.3-2 -> 4.6.1-3\n');
  expect((await plan(to)).stdout).not.toContain('base image: upgraded');
  const json = PlanOutput.parse(JSON.parse((await plan(to, '--packages', '-o', 'json')).stdout));
  expect(json.find(({ pool }) => pool === 'worker')).toMatchObject({
    baseChange: { from, to, contents: { kernels: { added: ['6.12.14'] } } },
  });
  const missing = await plan(`${host}/os/base:99`, '--packages');
  expect(missing.stdout).toMatch(/base image: what it brings is not known: .*404/);
});

describe('roots that package managers made', () => {
  /** Pushes a directory as an image of one layer, as GNU tar packs it. */
  async function pushRoot({ host, client }: Awaited<ReturnType<typeof setUp>>, tag: string, root: string) {
    const tar = execa('tar', ['--numeric-owner', '--xattrs', '-C', root, '-cf', '-', '.'], {
      encoding: 'buffer',
    });
    const archive = Buffer.from((await tar).stdout);
    const gzip = createGzip({ level: 1 });
    gzip.end(archive);
    const blob = await buffer(gzip);
    const at = parseReference(`${host}/os/root:${tag}`);
    const rootfs = { type: 'layers', diff_ids: [digestOf(archive)] };
    const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs }));
    await client.putBlob(at, blob, signal);
    await client.putBlob(at, config, signal);
    const mediaType = 'application/vnd.oci.image.manifest.v1+json';
    const blobOf = (bytes: Uint8Array, type: string) => ({
      mediaType: type,
      digest: digestOf(bytes),
      size: bytes.length,
    });
    const manifest = {
      schemaVersion: 2,
      mediaType,
      config: blobOf(config, 'application/vnd.oci.image.config.v1+json'),
      layers: [blobOf(blob, 'application/vnd.oci.image.layer.v1.tar+gzip')],
    };
    await client.putManifest(at, { mediaType, bytes: Buffer.from(JSON.stringify(manifest)) }, signal);
    return `${host}/os/root:${tag}`;
  }

  test('RPM itself: what rpm --query lists, in another release with a newer epoch', {
    timeout: patience(120_000),
  }, async () => {
    const world = await setUp();
    const { dir, diff } = world;
    const build = async (name: string, version: string, epoch: number) => {
      const spec = path.join(dir, `${name}.spec`);
      const lines = [
        ...[
          `Name: ${name}`,
          `Version: ${version}`,
          'Release: 1',
          `Epoch: ${epoch}`,
          'Summary: x',
          'License: x',
        ],
        ...['BuildArch: noarch', 'Vendor: Example', '%description', 'x', '%files'],
      ];
      await writeFile(spec, `${lines.join('\n')}\n`);
      await execa('rpmbuild', ['-bb', '--define', `_topdir ${dir}/rpmbuild`, spec]);
      return path.join(dir, 'rpmbuild/RPMS/noarch', `${name}-${version}-1.noarch.rpm`);
    };
    const rootOf = async (tag: string, rpms: readonly string[]) => {
      const root = path.join(dir, `root-${tag}`);
      await mkdir(root);
      const own = ['--root', root, '--dbpath', '/usr/lib/sysimage/rpm'];
      await execa('rpm', [...own, '--initdb']);
      await execa('rpm', [...own, '--install', '--justdb', '--nodeps', '--noscripts', ...rpms]);
      const { stdout } = await execa('rpm', [...own, '--query', '--all']);
      return { image: await pushRoot(world, tag, root), listed: stdout.split('\n').sort() };
    };
    const [one, two] = [await build('alpha', '1.0~rc1', 0), await build('beta', '2', 1)];
    const from = await rootOf('1', [one, two]);
    const [newer, older] = [await build('alpha', '1.0', 0), await build('beta', '1.9', 1)];
    const to = await rootOf('2', [newer, older, await build('gamma', '3^git1', 0)]);
    expect(from.listed).toEqual(['alpha-1.0~rc1-1.noarch', 'beta-2-1.noarch']);
    const { stdout, exitCode } = await diff(from.image, to.image, '-o', 'json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      from: { packages: 2 },
      to: { packages: 3 },
      packages: [
        { change: 'upgraded', name: 'alpha', from: '0:1.0~rc1-1', to: '0:1.0-1', architecture: 'noarch' },
        { change: 'downgraded', name: 'beta', from: '1:2-1', to: '1:1.9-1' },
        { change: 'added', name: 'gamma', to: '0:3^git1-1' },
      ],
      unknown: [],
    });
  });

  test('Debian: what dpkg lists of this machine, and of it with a package that is newer', async () => {
    const world = await setUp();
    const { dir, diff } = world;
    const own = await readFile('/var/lib/dpkg/status', 'utf8');
    const { stdout: listed } = await execa('dpkg', ['--get-selections']);
    const rootOf = async (tag: string, text: string) => {
      const root = path.join(dir, `root-${tag}`);
      await mkdir(path.join(root, 'var/lib/dpkg'), { recursive: true });
      await writeFile(path.join(root, 'var/lib/dpkg/status'), text);
      return pushRoot(world, tag, root);
    };
    const from = await rootOf('1', own);
    const admin = ['--admindir', path.join(dir, 'root-2/var/lib/dpkg')];
    const to = await rootOf('2', own.replace(/(Package: dpkg\n(?:.+\n)*?Version: )(.+)/, '$1999:$2'));
    const { stdout: shown } = await execa('dpkg', [...admin, '--status', 'dpkg']);
    const { stdout } = await diff(from, to, '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      from: {
        packages: listed.split('\n').filter((each) => !each.endsWith('deinstall')).length,
      },
      packages: [{ change: 'upgraded', name: 'dpkg', to: /^Version: (.+)$/m.exec(shown)?.[1] }],
    });
  });
});
