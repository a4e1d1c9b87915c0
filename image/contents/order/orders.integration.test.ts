/** dpkg and rpm are the independent readers of version order; a table holds only what somebody thought of. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { patience } from '../../../test/fixtures/patience.ts';
import { seed } from '../../../test/fixtures/sample.ts';
import { compareDpkgVersions } from './dpkg-order.ts';
import { compareRpmVersions } from './rpm-order.ts';

/** So many pairs are compared at once, because a process for each takes longer than all comparisons. */
const PAIRS = 500;

/** Few and short parts, so that pairs are near to each other: most differences are behind something equal. */
const part = fc.array(
  fc.constantFrom(
    '0',
    '1',
    '00',
    '10',
    '9',
    '20261129',
    '184467440737095516160',
    'a',
    'b',
    'rc',
    'Z',
    '.',
    '+',
  ),
  { maxLength: 4 },
);
const joined = (...marks: readonly string[]) =>
  fc
    .tuple(fc.constantFrom('1', '0', '10', '1.0', '2a'), part, fc.constantFrom('', ...marks), part)
    .map(([first, before, mark, after]) => `${first}${before.join('')}${mark}${after.join('')}`);
const epoch = fc.constantFrom('', '', '0:', '1:', '10:');
const near = (version: fc.Arbitrary<string>) =>
  fc.array(
    fc.oneof(
      fc.tuple(version, version),
      version.map((each) => [each, `${each}.1`] as [string, string]),
    ),
    {
      minLength: PAIRS,
      maxLength: PAIRS,
    },
  );

async function fileOf(text: string): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'versions-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = path.join(dir, 'text');
  await writeFile(file, text);
  return file;
}

const linesOf = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([a, b]) => `${a} ${b}\n`).join('');

test('versions are in the order of dpkg --compare-versions', { timeout: patience(120_000) }, async () => {
  const version = fc
    .tuple(
      epoch,
      joined('~', '~~', '-', '+'),
      fc.constantFrom('', '-1', '-1~bpo12+1', '-1+b2', '-0ubuntu0.1'),
    )
    .map((parts) => parts.join(''))
    // dpkg takes no empty revision.
    .filter((each) => !each.endsWith('-'));
  const script = `while read -r a b; do
    if dpkg --compare-versions "$a" lt "$b"; then echo -1
    elif dpkg --compare-versions "$a" gt "$b"; then echo 1
    else echo 0; fi
  done < "$1"`;
  await fc.assert(
    fc.asyncProperty(near(version), async (pairs) => {
      const file = await fileOf(linesOf(pairs));
      const { stdout } = await execa('sh', ['-c', script, 'sh', file]);
      const expected = stdout.split('\n').map((order, at) => [...(pairs[at] ?? []), Number(order)]);
      const found = pairs.map(([a, b]) => [a, b, Math.sign(compareDpkgVersions(a, b))]);
      expect(found).toEqual(expected);
    }),
    { seed, numRuns: 2, endOnFailure: true },
  );
});

test('versions are in the order of RPM', { timeout: patience(120_000) }, async () => {
  const version = fc
    .tuple(epoch, joined('~', '^', '~^', '_'), fc.constantFrom('-1', '-1.fc41', '-1^git.fc41', '-0.1~rc1'))
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(near(version), async (pairs) => {
      const file = await fileOf(linesOf(pairs));
      const script = await fileOf(`for line in io.lines('${file}') do
        local a, b = line:match('(%S+) (%S+)')
        print(rpm.vercmp(a, b))
      end`);
      const { stdout } = await execa('rpmlua', [script]);
      const expected = stdout.split('\n').map((order, at) => [...(pairs[at] ?? []), Number(order)]);
      const found = pairs.map(([a, b]) => [a, b, Math.sign(compareRpmVersions(a, b))]);
      expect(found).toEqual(expected);
    }),
    { seed, numRuns: 10, endOnFailure: true },
  );
});
