import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { MemoryRegistry } from '../fixtures/registry/memory-registry.ts';
import { everyCase, seed } from '../fixtures/sample.ts';
import { type PaperWalk, runPaperWalk } from './run-paper-walk.ts';
import { anyWalk } from './steps.ts';
import { pushStockImage, type Version } from './stock-images.ts';
import { pullspec } from './walk-cluster.ts';

const STEPS = 12;
const WALKS = everyCase ? 400 : 5;
const LIMIT_MS = WALKS * 15_000;

const anyPaperWalk: fc.Arbitrary<PaperWalk> = fc.record({
  walk: anyWalk(STEPS),
  layered: fc.boolean(),
  takes: fc.array(fc.nat(7), { minLength: STEPS, maxLength: STEPS }),
});

test(
  'plan, the label of the image and the daemon say the same of every node, also of those that are behind',
  async () => {
    const signal = deadline(LIMIT_MS);
    const { host } = await MemoryRegistry.start();
    const registry = createRegistryClient({ plainHttp: new Set([host]) });
    const push = (version: Version) =>
      pushStockImage(registry, `${host}/os/stock:${version}`, version, signal);
    const digests = { '1': await push('1'), '2': await push('2') };
    const imageOf = (version: Version) => pullspec(host, 'os/stock', digests[version]);
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(anyPaperWalk, async (walk) => {
        compared += await runPaperWalk(walk, { registry, host, imageOf, signal });
      }),
      { seed, numRuns: WALKS },
    );
    expect(compared).toBeGreaterThan(WALKS * STEPS);
  },
  patience(LIMIT_MS),
);
