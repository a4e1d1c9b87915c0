import { expect, test } from 'vitest';
import { deployment, imageOf, standard } from '../../test/fixtures/step-context.ts';
import type { NodeDeployment } from '../os/backend.ts';
import type { Current } from '../records/current.ts';
import { asDeployed } from './update.ts';

const stock = imageOf('0');
const runs = (kernelArguments: string[], baseImage: string | undefined = stock): Current => ({
  ...standard('rendered-1'),
  baseImage,
  kernelArguments,
});
const layered: Current = { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') };

test.each<[string, Current | undefined, Partial<NodeDeployment>]>([
  ['a fresh node', undefined, { kernelArguments: ['rw'] }],
  ['a layered node', layered, { kernelArguments: ['rw'], addedKernelArguments: ['quiet'] }],
  ['all arguments', runs(['quiet', 'a=1']), { kernelArguments: ['rw', 'a=1', 'quiet'] }],
  ['an argument in another form', runs(['a=', 'b="c d"']), { kernelArguments: ['a', '"b=c d"'] }],
  ['an argument of its admin', runs(['quiet']), { kernelArguments: ['rw', 'quiet', 'mine=1'] }],
  [
    'what Shale noted',
    runs(['quiet']),
    { kernelArguments: ['rw', 'quiet'], addedKernelArguments: ['quiet'] },
  ],
  [
    'a note that can’t be read',
    runs(['quiet']),
    { kernelArguments: ['rw'], unreadableArgumentNotes: 'kernel-arguments.json is damaged' },
  ],
])('a node with %s runs what its record says', (_name, current, booted) => {
  expect(asDeployed(current, deployment('/booted', booted))).toBe(current);
});

test.each([undefined, '', 'registry.example.com/os/worker:latest'])(
  'a node whose OS image is %j can’t be given another deployment',
  (baseImage) => {
    const { baseImage: _, ...rest } = runs(['quiet']);
    const current = (baseImage === undefined ? rest : { ...rest, baseImage }) as Current;
    expect(asDeployed(current, deployment('/booted', { kernelArguments: ['rw'] }))).toBe(current);
  },
);

test.each<[string, string[], Partial<NodeDeployment>, string[]]>([
  ['without an argument that is gone', ['quiet', 'a=1'], { kernelArguments: ['rw', 'a=1'] }, ['a=1']],
  [
    'with those that Shale noted',
    ['quiet'],
    { kernelArguments: ['rw', 'quiet', 'left=1'], addedKernelArguments: ['quiet', 'left=1'] },
    ['quiet', 'left=1'],
  ],
])('a node runs its record %s', (_name, recorded, booted, expected) => {
  expect(asDeployed(runs(recorded), deployment('/booted', booted))).toEqual(runs(expected));
});
