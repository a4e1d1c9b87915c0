import { expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { deployment, imageOf, standard } from '../../test/fixtures/step-context.ts';
import type { OsBackend } from '../os/backend.ts';
import type { Current } from '../records/current.ts';
import { settleNextBoot } from './prepare-boot.ts';

const [ours, other, third] = [imageOf('1'), imageOf('2'), imageOf('3')];
const layered: Current = { version: 1, mode: 'Layered', config: 'rendered-1', image: ours };
const inStandard = standard('rendered-1');

test.each<
  [string, { current: Current | undefined; booted?: typeof ours; staged?: typeof ours }, readonly string[]]
>([
  ['an image that was booted', { current: layered, booted: ours }, []],
  ['an image that was booted, and is staged too', { current: layered, booted: ours, staged: ours }, []],
  ['an image that was booted, over another', { current: layered, booted: ours, staged: other }, ['unstage']],
  ['an image that was applied live', { current: layered, booted: other, staged: ours }, []],
  ['an image that was applied live, and unstaged', { current: layered, booted: other }, [`stage ${ours}`]],
  [
    'an image that was applied live, over another',
    { current: layered, booted: other, staged: third },
    [`stage ${ours}`],
  ],
  ['standard mode', { current: inStandard, booted: ours }, []],
  [
    'standard mode, without other kernel arguments',
    { current: inStandard, booted: ours, staged: ours },
    ['unstage'],
  ],
  ['standard mode, over another image', { current: inStandard, booted: ours, staged: other }, ['unstage']],
  ['a fresh node', { current: undefined, booted: ours }, []],
  [
    'a fresh node, over an image that was staged',
    { current: undefined, booted: ours, staged: other },
    ['unstage'],
  ],
  ['a node whose image is not known', { current: undefined }, []],
  [
    'a node whose image is not known, over one that was staged',
    { current: undefined, staged: other },
    ['unstage'],
  ],
])('the next boot is what runs: %s', async (_name, { current, booted, staged }, expected) => {
  const done: string[] = [];
  const backend = {
    status: async () => ({
      booted: deployment('/booted', booted === undefined ? {} : { image: booted }),
      ...(staged === undefined ? {} : { staged: deployment('/staged', { image: staged }) }),
    }),
    stage: async (image: string) => {
      done.push(`stage ${image}`);
      return deployment('/staged');
    },
    unstage: async () => void done.push('unstage'),
  } as unknown as OsBackend;
  await settleNextBoot(backend, current, deadline(10_000));
  expect(done).toEqual(expected);
});
