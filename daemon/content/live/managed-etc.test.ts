import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { deployment } from '../../../test/fixtures/step-context.ts';
import { contentDigest, readTreeEntry } from '../../files/tree-entry.ts';
import { managedAfterApply, untouchedManagedPaths } from './managed-etc.ts';

let top: string;
const signal = deadline(30_000);
const at = (...names: readonly string[]) => path.join(top, ...names);
const digestOf = async (name: string) => contentDigest(await readTreeEntry(at('root', name)));

beforeEach(async () => {
  top = await mkdtemp(path.join(tmpdir(), 'shale-managed-etc-'));
  onTestFinished(() => rm(top, { recursive: true }));
  for (const name of ['root/etc', 'booted/usr/etc', 'staged/usr/etc'])
    await mkdir(at(name), { recursive: true });
});

/** Of one file; undefined where there is none. */
type Versions = readonly [
  booted?: string | undefined,
  running?: string | undefined,
  staged?: string | undefined,
];

/** Writes a file of /etc as the booted image, the running root and the staged image have it, where they do. */
async function put(name: string, ...[booted, running, staged]: Versions): Promise<void> {
  const places = [
    ['booted/usr/etc', booted],
    ['root/etc', running],
    ['staged/usr/etc', staged],
  ] as const;
  for (const [place, text] of places) if (text !== undefined) await writeFile(at(place, name), text);
}

/** @param managed the record before, by path. @returns the record after a live apply. */
async function recordAfter(managed: ReadonlyMap<string, readonly string[]> = new Map()) {
  const [booted, staged] = [deployment(at('booted')), deployment(at('staged'))];
  return managedAfterApply({ root: at('root'), booted, staged, managed }, signal);
}

describe('the record after a live apply', () => {
  test.each<[string, Versions, boolean]>([
    ['is new and as the staged image has it', [undefined, 'new', 'new'], true],
    ['has changed to what the staged image has', ['old', 'new', 'new'], true],
    ['is gone, as from the staged image', ['old', undefined, undefined], true],
    ['is as both images have it', ['old', 'old', 'old'], false],
    ['is as the booted image has it, and not the staged one', ['old', 'old', 'new'], false],
    ['somebody has edited', ['old', 'edited', 'new'], false],
    ['somebody has added', [undefined, 'added', undefined], false],
    ['somebody has removed', ['old', undefined, 'new'], false],
  ])('of a file that %s: %s', async (_what, versions, isManaged) => {
    await put('app.conf', ...versions);
    const record = await recordAfter();
    expect([...record.keys()]).toEqual(isManaged ? ['/etc/app.conf'] : []);
    if (isManaged) expect(record.get('/etc/app.conf')).toEqual([await digestOf('etc/app.conf')]);
  });

  test('keeps what it had of a file that is as Shale wrote it, and of no other', async () => {
    await put('own.conf', undefined, 'written by Shale');
    await put('edited.conf', undefined, 'edited since');
    const own = await digestOf('etc/own.conf');
    const before = new Map([
      ['/etc/own.conf', [own]],
      ['/etc/edited.conf', ['another digest']],
    ]);
    expect(await recordAfter(before)).toEqual(new Map([['/etc/own.conf', [own]]]));
    expect(await untouchedManagedPaths(at('root'), before)).toEqual(new Map([['/etc/own.conf', own]]));
  });
});
