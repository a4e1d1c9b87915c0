import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { FileFacts } from '../contents/file-facts.ts';
import { ContentError } from '../registry/registry-error.ts';
import { type BaseDirectory, BaseTree } from './base-tree.ts';

/** Facts by path, as a record has them beside the tree. */
const RecordedFacts = z.array(z.tuple([z.string(), FileFacts]));

/** Bytes of a record's text; the most packages that one has take some fifty million. */
const MAX_BYTES = 128 * 1024 * 1024;

/** @returns the facts of a tree as bytes, the same for the same tree. */
export function formatBaseFacts({ root }: BaseTree): Uint8Array {
  const facts = [...factsBelow(root, '')].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return gzipSync(JSON.stringify(facts), { level: 6 });
}

function* factsBelow(directory: BaseDirectory, path: string): Generator<[string, FileFacts]> {
  for (const [name, node] of directory.children) {
    if (node.kind === 'directory') yield* factsBelow(node, `${path}/${name}`);
    else if (node.kind === 'file' && node.facts !== undefined) yield [`${path}/${name}`, node.facts];
  }
}

/**
 * @param tree of the same record, which only the caller has. @param where for the message of an error.
 * @returns the tree with its facts.
 * @throws ContentError for anything but what formatBaseFacts writes.
 */
export function withBaseFacts({ root }: BaseTree, bytes: Uint8Array, where: string): BaseTree {
  try {
    const text = gunzipSync(bytes, { maxOutputLength: MAX_BYTES }).toString('utf8');
    for (const [path, facts] of RecordedFacts.parse(JSON.parse(text))) setFacts(root, path, facts);
    return new BaseTree(root);
  } catch (cause) {
    throw new ContentError(`${where}: has no facts of the files of a base image`, { cause });
  }
}

function setFacts(root: BaseDirectory, path: string, facts: FileFacts): void {
  const parts = path.split('/').slice(1);
  const name = parts.pop() ?? '';
  let directory = root;
  for (const part of parts) {
    const next = directory.children.get(part);
    if (next?.kind !== 'directory') throw new TypeError(`there is no directory at ${path}`);
    directory = next;
  }
  const file = directory.children.get(name);
  if (file?.kind !== 'file') throw new TypeError(`there is no file at ${path}`);
  directory.children.set(name, { ...file, facts });
}
