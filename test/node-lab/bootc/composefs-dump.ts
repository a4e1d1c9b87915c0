import { formatContents, type Listing } from '../../differential/listing.ts';
import { formatAttributes } from '../../differential/tree-item.ts';

const TYPE = 0o170000;
const [DIRECTORY, FILE, LINK] = [0o40000, 0o100000, 0o120000];

/**
 * @param dump as composefs-dump(5) has it: what short files have is in it, of others the digest.
 * @returns the tree that it describes.
 */
export function parseDump(dump: string): Listing {
  const listing = new Map<string, string>();
  const hardLinks: (readonly [string, string])[] = [];
  for (const line of dump.split('\n')) {
    const [name = '', size, mode = '', , uid, gid, , , payload = '', content = '', digest] = line.split(' ');
    if (name === '' || name === '/') continue;
    if (mode.startsWith('@')) {
      hardLinks.push([unescaped(name).toString(), unescaped(payload).toString()]);
      continue;
    }
    const bits = Number.parseInt(mode, 8);
    const attributes = formatAttributes({ mode: bits & 0o7777, uid: Number(uid), gid: Number(gid) });
    const contents = content === '-' && digest !== '-' ? `${size} bytes ${digest}` : contentsOf(content);
    listing.set(
      unescaped(name).toString(),
      {
        [DIRECTORY]: `directory ${attributes}`,
        [FILE]: `file ${attributes} ${contents}`,
        [LINK]: `symlink ${uid}:${gid} -> ${unescaped(payload).toString()}`,
      }[bits & TYPE] ?? 'special',
    );
  }
  for (const [name, target] of hardLinks)
    listing.set(name, listing.get(target) ?? `a hard link to ${target}`);
  return listing;
}

function contentsOf(field: string): string {
  return formatContents(field === '-' ? Buffer.alloc(0) : unescaped(field));
}

const NAMED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '\\': '\\' };

function unescaped(field: string): Buffer {
  const text = field.replaceAll(/\\(?:x([0-9a-f]{2})|(.))/g, (_all, hex?: string, name = '') =>
    hex === undefined ? (NAMED[name] ?? name) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(text, 'latin1');
}
