/** rpm-ostree's stand-in does what rpm-ostree was recorded to do, so that tests over it mean something. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { walkRpmOstree } from './rpm-ostree-walk.ts';
import { createToolNode } from './tool-node.ts';

/** What test/node-lab/rpm-ostree holds against the real one. */
const RECORDED = path.join(import.meta.dirname, 'recorded/rpm-ostree-2026.2.json');

describe.skipIf(noDirectoryNodes !== undefined)('rpm-ostree’s stand-in', () => {
  it('does what rpm-ostree 2026.2 did', { timeout: patience(300_000) }, async () => {
    await using node = await createToolNode('rpm-ostree');
    expect(await walkRpmOstree(node)).toEqual(JSON.parse(await readFile(RECORDED, 'utf8')));
  });
});
