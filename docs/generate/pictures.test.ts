import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { patience } from '../../test/fixtures/patience.ts';

test(
  'the pictures of the README were drawn from this version of the page and of the tour',
  async () => {
    // A process of its own, because Vite builds another page where NODE_ENV is that of a test.
    const { exitCode, stderr } = await execa(
      process.execPath,
      [path.join(import.meta.dirname, 'pictures.ts'), '--check'],
      {
        env: { NODE_ENV: 'production' },
        reject: false,
      },
    );
    expect(exitCode, stderr).toBe(0);
  },
  patience(60_000),
);
