import { execa } from 'execa';
import { expect, it } from 'vitest';

/**
 * Holds 600,000 objects and makes garbage that outlives the young generation. Prints the largest size of the heap, in
 * MB.
 */
const CHURN = `
const held = Array.from({ length: 600_000 }, (_, index) => ({ index, text: 'x' + index }));
const recent = [];
let largest = 0;
for (let made = 0; made < 20_000_000; made += 1) {
  recent[made % 200_000] = { made, more: [made] };
  if (made % 50_000 === 0) largest = Math.max(largest, process.memoryUsage().heapTotal);
}
process.stdout.write(String(held.length && largest / 1e6));
`;

async function largestHeap(before: string): Promise<number> {
  const script = `${before}\n${CHURN}`;
  const args = ['--input-type=module', '--max-semi-space-size=8', '--eval', script];
  const { stdout } = await execa(process.execPath, args, { cwd: import.meta.dirname });
  return Number(stdout);
}

it('garbage lets the heap grow to less than two thirds of what V8 allows by itself', async () => {
  const [limited, without] = await Promise.all([
    largestHeap(
      `import { limitHeapGrowth } from '${import.meta.dirname}/heap-growth.ts'; limitHeapGrowth();`,
    ),
    largestHeap(''),
  ]);
  expect(limited).toBeLessThan((2 / 3) * without);
});
