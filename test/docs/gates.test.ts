import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { START_WAITS } from '../../rollout/gates/gates.ts';

/** @returns the text of a page of docs/. */
const page = (name: string) => readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

it.each(['reference/operator.md', 'how-to/staged-rollouts.md'])(
  '%s has each reason for which an update is held',
  async (name) => {
    const text = await page(name);
    expect([...START_WAITS.keys()].filter((reason) => !text.includes(`\`${reason}\``))).toEqual([]);
  },
);
