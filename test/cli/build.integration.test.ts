/** `shale build` and `shale image` as a user runs them, against a registry on loopback. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { ImageOutput } from '../../cli/image/image-view.ts';
import { pushIndex } from '../../image/image-index.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';

const root = path.join(import.meta.dirname, '../..');
const shale = (...args: string[]) => execa(path.join(root, 'bin/shale'), args, { cwd: root, reject: false });

async function registryWithBase() {
  const dir = await mkdtemp(path.join(tmpdir(), 'cli-build-'));
  const registry = await startDockerRegistry({ dir });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  await pushBaseImage(client, `${registry.host}/os/stock:1`, deadline(30_000));
  return { ...registry, dir, client };
}

test('an image is built from the examples, and says what the next one asks of a node', async () => {
  const { host } = await registryWithBase();
  const common = ['--pool', 'worker', '--base', `${host}/os/stock:1`, '--plain-http', host];
  const built = await shale('build', ...common, '--push', `${host}/os/worker:1`, '-f', 'examples');
  expect(built.stderr).toContain('one layer of');
  expect(built.stdout).toMatch(new RegExp(`^${host}/os/worker@sha256:[0-9a-f]{64}$`));
  const next = await shale(
    'build',
    ...common,
    '--push',
    `${host}/os/worker:2`,
    '--from',
    'examples',
    '-f',
    'examples/tour/chrony-v2.yaml',
  );
  expect(next.stderr).toContain(': Restart(chronyd.service)');
  const inspected = await shale('image', 'inspect', next.stdout, '--plain-http', host, '-o', 'json');
  expect(JSON.parse(inspected.stdout)).toMatchObject({
    pool: 'worker',
    layers: [{}, {}],
    transitions: [
      { actions: 'Restart(chronyd.service)', because: ['/etc/chrony.conf: policy for /etc/chrony.conf'] },
    ],
  });
});

test('two images are compared by what they carry, wherever their MachineConfigs are now', async () => {
  const { host, client } = await registryWithBase();
  const other = `${host}/os/stock:other`;
  await pushBaseImage(client, other, deadline(30_000), 'amd64', 'other');
  const files = ['-f', 'examples', 'examples/tour/chrony-v2.yaml'];
  const build = async (base: string, ...more: string[]) => {
    const common = ['--pool', 'worker', '--plain-http', host, '--push', `${host}/os/worker:1`];
    return (await shale('build', ...common, '--base', base, ...more)).stdout;
  };
  const first = await build(`${host}/os/stock:1`, '-f', 'examples');
  const second = await build(other, ...files);
  const compare = (...images: string[]) => shale('diff', ...images, '--plain-http', host);
  const { stdout, exitCode } = await compare(first, second);
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^\+server ntp3.example.org iburst$/m);
  expect(stdout).toMatch(/^-.*\/os\/stock@sha256:/m);
  expect(await compare(first, first)).toMatchObject({ exitCode: 0 });
  expect((await compare(first, `${host}/os/worker:none`)).exitCode).toBe(69);
  expect(await compare(first, other)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('was not built by Shale'),
  });
});

test('an image is described as text, with the files of its layer, and an index with its platforms', async () => {
  const { host, client } = await registryWithBase();
  const signal = deadline(30_000);
  const stock = { registry: host, repository: 'os/stock' };
  const arm64 = await pushBaseImage(client, `${host}/os/stock:arm64`, signal, 'arm64');
  const amd64 = await pushBaseImage(client, `${host}/os/stock:1`, signal);
  await pushIndex(client, { ...stock, tag: 'both' }, [amd64, arm64], signal);
  const common = ['--pool', 'worker', '--base', `${host}/os/stock:both`, '--plain-http', host];
  const both = ['--architecture', 'amd64', 'arm64'];
  const { stdout: image } = await shale(
    'build',
    ...common,
    ...both,
    ...['--push', `${host}/os/worker:1`, '-f', 'examples', '--from', 'examples'],
  );
  const look = ['image', 'inspect', image, '--plain-http', host, '--architecture', 'arm64'];
  const { stdout } = await shale(...look, '--files');
  expect(stdout).toMatch(/^Platform: +linux\/arm64, from an index of linux\/amd64, linux\/arm64$/m);
  expect(stdout).toMatch(/^Pool: +worker$/m);
  expect(stdout).toMatch(
    /^Attached: +provenance \(in-toto\), list of files \(SPDX\), list of what it has \(packages, /m,
  );
  expect(stdout).toMatch(/^2 +[0-9.]+ KiB +rendered-worker-\w+ +sha256:/m);
  expect(stdout).toMatch(/^From rendered-worker-\w+\n {2}on .*os\/stock@sha256:\w+: None$/m);
  expect(stdout).toMatch(/^0644 +0:0 +.* B +\/etc\/chrony.conf$/m);
  const json = await shale(...look, '--files', '-o', 'json');
  expect(ImageOutput.parse(JSON.parse(json.stdout)).files).toContainEqual(
    expect.objectContaining({ path: '/etc/chrony.conf', type: 'file', mode: '0644' }),
  );
  const stockText = await shale('image', 'inspect', `${host}/os/stock:1`, '--plain-http', host);
  expect(stockText.stdout).toContain('Shale did not build this image');
});

test('a name that is none ends with 2', async () => {
  const { exitCode, stderr } = await shale('image', 'inspect', 'worker:1');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('has no registry host');
});

test('a base image is read from the mirrors of a registries.conf, and the image is pushed past them', async () => {
  const { host, dir } = await registryWithBase();
  const conf = path.join(dir, 'registries.conf');
  await writeFile(
    conf,
    `[[registry]]\nlocation = "r.invalid"\nblocked = true\n[[registry.mirror]]\nlocation = "${host}"\ninsecure = true\n`,
  );
  const mirrors = ['--registries-conf', conf, '--plain-http', host];
  const push = `${host}/os/mirrored:1`;
  const built = await shale(
    ...[
      'build',
      '--pool',
      'worker',
      '--base',
      'r.invalid/os/stock:1',
      '--push',
      push,
      '-f',
      'examples',
      ...mirrors,
    ],
  );
  expect(built.stdout).toMatch(new RegExp(`^${host}/os/mirrored@sha256:`));
  expect(built.stderr).toContain('r.invalid/os/stock@sha256:');
  const inspected = await shale('image', 'inspect', 'r.invalid/os/stock:1', ...mirrors, '-o', 'json');
  expect(JSON.parse(inspected.stdout)).toMatchObject({ layers: [{}], signatures: 0 });
  await writeFile(conf, '[[registry]]');
  const refused = await shale('image', 'inspect', 'r.invalid/os/stock:1', ...mirrors);
  expect(refused.stderr).toContain('registry 1 has neither prefix nor location');
  expect(refused.exitCode).toBe(2);
});

test('an image that is not there is one line and exit code 1', async () => {
  const { host } = await registryWithBase();
  const { stderr, exitCode } = await shale('image', 'inspect', `${host}/os/nothing:1`, '--plain-http', host);
  expect(exitCode).toBe(1);
  expect(stderr.split('\n')).toHaveLength(1);
  expect(stderr).toMatch(/^shale: GET .*os\/nothing manifests\/1: /);
});

test('a Containerfile without an architecture is for every one: it needs an engine', async () => {
  const { host, dir } = await registryWithBase();
  const file = path.join(dir, 'config.json');
  const spec = {
    machineConfigPool: { name: 'worker' },
    renderedImagePushSpec: `${host}/os/worker:1`,
    containerFile: [{ content: 'FROM configs AS final\nRUN true\n' }],
  };
  const config = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSConfig',
    metadata: { name: 'worker' },
    spec,
  };
  await writeFile(file, JSON.stringify(config));
  const common = ['--pool', 'worker', '--base', `${host}/os/stock:1`, '--plain-http', host];
  const built = await shale('build', ...common, '--push', `${host}/os/worker:1`, '-f', 'examples', file);
  expect(built.stderr).toContain('container engine');
  expect(built.stdout).toBe('');
  expect(built.exitCode).toBe(1);
});
