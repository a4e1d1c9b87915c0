/** The stand-in does what bootc 1.16.9 was recorded to do, so that tests over it mean something. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { createComposefsNode } from './composefs-node.ts';
import { walkComposefs } from './composefs-walk.ts';
import type { WalkStep } from './walk.ts';

const RECORDED = path.join(import.meta.dirname, 'recorded/bootc-1.16.9-composefs-systemd-boot.json');
/** What the stand-in doesn't do, because Shale doesn't ask for it. */
const NOT_IMITATED = [
  'held back no longer',
  'kernel arguments of a source',
  'switch to an image with another kernel, by a soft reboot',
  'after the soft reboot was refused',
  'switch by a soft reboot',
  'after a soft reboot was prepared',
  'usr-overlay',
  'with an overlay on /usr',
];

describe.skipIf(noDirectoryNodes !== undefined)('bootc’s stand-in, with composefs in place of ostree', () => {
  it('does what bootc 1.16.9 did', { timeout: patience(120_000) }, async () => {
    await using node = await createComposefsNode();
    const recorded: readonly WalkStep[] = JSON.parse(await readFile(RECORDED, 'utf8'));
    expect(await walkComposefs(node)).toEqual(recorded.filter(({ step }) => !NOT_IMITATED.includes(step)));
  });
});
