/** bootc itself does what was recorded of it: the stand-in of faster tests is held to the same recording. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootc } from '../../../daemon/os/bootc/bootc.ts';
import { backendContract } from '../../fixtures/backend-contract/contract.ts';
import { patience } from '../../fixtures/patience.ts';
import { walkBootc } from '../../os-tools/bootc-walk.ts';
import { FIRST_TIME_MS } from '../lab.ts';
import { startToolMachines, type ToolMachines } from '../tool-machine.ts';
import { givenSystem, noBootc } from './given-bootc.ts';

const RECORDED = path.join(import.meta.dirname, '../../os-tools/recorded/bootc-1.16.9.json');
const title = noBootc === undefined ? 'bootc' : `bootc (skipped: ${noBootc})`;
const skip = noBootc !== undefined;

describe.skipIf(skip)(title, { timeout: patience(600_000) }, () => {
  let machines: ToolMachines;

  beforeAll(async () => {
    machines = await startToolMachines(givenSystem(), bootc);
  }, patience(FIRST_TIME_MS));
  afterAll(() => machines?.[Symbol.asyncDispose](), patience(60_000));

  it('does what was recorded of it, which its stand-in does too', async () => {
    await using machine = await machines.create();
    const steps = await walkBootc(machine);
    // After a reader has looked at what another version does differently.
    if (process.env['SHALE_RECORD'] !== undefined) {
      await writeFile(RECORDED, `${JSON.stringify(steps, undefined, 2)}\n`);
    }
    expect(steps).toEqual(JSON.parse(await readFile(RECORDED, 'utf8')));
  });

  backendContract('bootc', { create: () => machines.create(), skip });
});
