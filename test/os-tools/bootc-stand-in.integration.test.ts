/** bootc's stand-in does what bootc was recorded to do, so that tests over it mean something. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { patience } from '../fixtures/patience.ts';
import { layerFile, noDirectoryNodes } from '../fixtures/test-node.ts';
import { walkBootc } from './bootc-walk.ts';
import { createToolNode } from './tool-node.ts';

/** What test/node-lab/bootc holds against the real one. */
const RECORDED = path.join(import.meta.dirname, 'recorded/bootc-1.16.9.json');
/** The machine of the record has a systemd that can. */
const SOFT_REBOOT = '/usr/lib/systemd/system/soft-reboot.target';

describe.skipIf(noDirectoryNodes !== undefined)('bootc’s stand-in', () => {
  it('does what bootc 1.16.9 did', { timeout: patience(300_000) }, async () => {
    await using node = await createToolNode('bootc');
    await writeFile(path.join(node.root, SOFT_REBOOT), '[Unit]\n');
    const addImage: typeof node.addImage = (layer, labels) =>
      node.addImage([...layer, layerFile(SOFT_REBOOT, '[Unit]\n')], labels);
    const steps = await walkBootc({ ...node, addImage });
    expect(steps).toEqual(JSON.parse(await readFile(RECORDED, 'utf8')));
  });
});
