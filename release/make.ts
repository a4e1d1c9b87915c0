/**
 * Makes a release into a directory and, where a registry is given, pushes its image and chart:
 *
 *   node release/make.ts --version VERSION [--out DIRECTORY] [--registry HOST/PATH] [--base IMAGE] [--key FILE]
 *     [--downloads URL]
 *
 * `make release` calls it; docs/how-to/release.md says what for.
 */

import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { errorMessage } from '../api/error-message.ts';
import { parseReference } from '../image/reference.ts';
import { parseAuthFile } from '../image/registry/credentials.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { parseSigningKey, type SigningKey } from '../image/signature/signing-key.ts';
import { commandLine } from './cli/command-line.ts';
import { nodeOfNpm } from './node-programs.ts';
import { publishRelease } from './publish.ts';
import { makeRelease, type Release } from './release.ts';

const ROOT = path.join(import.meta.dirname, '..');
const ARCHITECTURES = ['amd64', 'arm64'];
/** As the Containerfile has it: it lends the C library and the programs. */
const BASE = 'docker.io/library/node:24-bookworm-slim';
/** Where nobody says where image and chart will lie, the files name what the documentation calls a registry. */
const PLACEHOLDER = 'registry.example.com/shale';
const DOWNLOADS = 'https://downloads.example.com/shale';
const AT_MOST_MS = 60 * 60_000;

const { values: flags } = parseArgs({
  options: {
    version: { type: 'string' },
    out: { type: 'string' },
    registry: { type: 'string' },
    downloads: { type: 'string' },
    'insecure-registry': { type: 'string', multiple: true, default: [] },
    base: { type: 'string', default: BASE },
    key: { type: 'string' },
  },
});

async function run(): Promise<void> {
  const { version } = flags;
  if (!version) throw new Error('VERSION is missing; expected make release VERSION=x');
  const out = path.resolve(flags.out || path.join(ROOT, 'dist/release', version));
  await checkReplaceable(out);
  const signal = AbortSignal.timeout(AT_MOST_MS);
  const key = flags.key ? await signingKey(flags.key) : undefined;
  const auths = await credentials();
  const plainHttp = new Set(flags['insecure-registry']);
  const client = createRegistryClient({ plainHttp, auths });
  const lock = await readFile(path.join(ROOT, 'package-lock.json'), 'utf8');
  const node = (architecture: string) =>
    nodeOfNpm(lock, architecture, path.join(ROOT, '.shale/node-packages'), signal);
  const release = await makeRelease(
    client,
    {
      version,
      revision: await revision(),
      root: ROOT,
      packages: path.join(ROOT, '.image-packages'),
      base: parseReference(flags.base),
      architectures: ARCHITECTURES,
      registry: flags.registry || PLACEHOLDER,
      downloads: flags.downloads || `${DOWNLOADS}/v${version}`,
      commandLine: () =>
        commandLine(
          { root: ROOT, page: path.join(ROOT, 'page/dist'), architectures: ARCHITECTURES, node },
          signal,
        ),
      node,
    },
    signal,
  );
  await write(out, release, key);
  for (const note of release.notes) process.stdout.write(`${note}\n`);
  process.stdout.write(`${out}:\n`);
  for (const [name, bytes] of release.files) process.stdout.write(`  ${name} ${bytes.length}\n`);
  if (!flags.registry) return;
  for (const publication of release.publications) {
    await publishRelease(client, publication, { statement: release.statement, key }, signal);
    const { at, subject } = publication;
    process.stdout.write(`pushed ${at.registry}/${at.repository}:${at.tag}@${subject.digest}\n`);
  }
}

/** A directory of somebody else's is not deleted. */
async function checkReplaceable(out: string): Promise<void> {
  const there = await stat(out).catch(() => undefined);
  if (there === undefined || (await stat(path.join(out, 'SHA256SUMS')).catch(() => undefined))) return;
  throw new Error(`${out} exists and is no release: name another directory with OUT=`);
}

/** A release appears whole or not at all. */
async function write(out: string, { files }: Release, key: SigningKey | undefined): Promise<void> {
  const partial = `${out}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  for (const [name, bytes] of files) await writeFile(path.join(partial, name), bytes);
  const sums = files.get('SHA256SUMS');
  if (key !== undefined && sums !== undefined) {
    // cosign verify-blob and openssl read it. A signature has another number each time: the one file that differs.
    const signature = Buffer.from(key.sign(sums)).toString('base64');
    await writeFile(path.join(partial, 'SHA256SUMS.sig'), `${signature}\n`);
  }
  await rm(out, { recursive: true, force: true });
  await rename(partial, out);
}

async function signingKey(file: string): Promise<SigningKey> {
  return parseSigningKey(await readFile(file, 'utf8'), file, process.env['COSIGN_PASSWORD']);
}

/** As podman, skopeo and helm find them (containers-auth.json(5)). */
async function credentials(): Promise<ReturnType<typeof parseAuthFile> | undefined> {
  const file = process.env['REGISTRY_AUTH_FILE'] ?? path.join(homedir(), '.docker/config.json');
  try {
    return parseAuthFile(await readFile(file, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${file}: ${errorMessage(error)}`, { cause: error });
  }
}

async function revision(): Promise<string | undefined> {
  const { stdout, failed } = await execa('git', ['rev-parse', 'HEAD'], { cwd: ROOT, reject: false });
  return failed ? undefined : stdout;
}

try {
  await run();
} catch (error) {
  process.stderr.write(`release: ${errorMessage(error)}\n`);
  process.exitCode = 1;
}
