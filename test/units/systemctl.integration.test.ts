import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed } from '../fixtures/sample.ts';
import { type UnitCase, unitCases } from './unit-case.ts';
import { comparable, linksBySystemctl, linksInStandardMode, linksOfImage, renderedOf } from './unit-trees.ts';

/** `SHALE_UNIT_CASES=5000` tries as many as that. */
const RUNS = Number(process.env['SHALE_UNIT_CASES'] ?? 40);

async function compare(unitCase: UnitCase, before?: UnitCase): Promise<void> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-units-'));
  try {
    const at = (name: string) => path.join(directory, name);
    const real = comparable(await linksBySystemctl(at('real'), unitCase), unitCase);
    const standard = await linksInStandardMode(at('standard'), unitCase);
    expect({ standard: comparable(standard, unitCase) }).toEqual({ standard: real });
    expect({ image: await linksOfImage(at('image'), unitCase) }).toEqual({ image: standard });
    if (before === undefined) return;
    const by = renderedOf(before).config;
    expect({ next: await linksInStandardMode(at('next'), unitCase, by) }).toEqual({ next: standard });
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('any units have the links that systemctl makes, in either mode, whatever was there before', async () => {
  await fc.assert(
    fc.asyncProperty(unitCases, unitCases, async (unitCase, before) => {
      await compare(unitCase, before);
    }),
    { seed, numRuns: RUNS },
  );
}, 3_600_000);
