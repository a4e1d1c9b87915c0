/** rpm-ostree itself does what was recorded of it: the stand-in of faster tests is held to the same recording. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rpmOstree } from '../../../daemon/os/rpm-ostree/rpm-ostree.ts';
import { backendContract } from '../../fixtures/backend-contract/contract.ts';
import { patience } from '../../fixtures/patience.ts';
import { walkRpmOstree } from '../../os-tools/rpm-ostree-walk.ts';
import { FIRST_TIME_MS } from '../lab.ts';
import { startToolMachines, type ToolMachines } from '../tool-machine.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

const RECORDED = path.join(import.meta.dirname, '../../os-tools/recorded/rpm-ostree-2026.2.json');
const title = noRpmOstree === undefined ? 'rpm-ostree' : `rpm-ostree (skipped: ${noRpmOstree})`;
const skip = noRpmOstree !== undefined;

describe.skipIf(skip)(title, { timeout: patience(600_000) }, () => {
  let machines: ToolMachines;

  beforeAll(async () => {
    machines = await startToolMachines(rpmOstreeSystem(RPM_OSTREE), rpmOstree);
  }, patience(FIRST_TIME_MS));
  afterAll(() => machines?.[Symbol.asyncDispose](), patience(60_000));

  it('does what was recorded of it, which its stand-in does too', async () => {
    await using machine = await machines.create();
    const steps = await walkRpmOstree(machine);
    // After a reader has looked at what another version does differently.
    if (process.env['SHALE_RECORD'] !== undefined) {
      await writeFile(RECORDED, `${JSON.stringify(steps, undefined, 2)}\n`);
    }
    expect(steps).toEqual(JSON.parse(await readFile(RECORDED, 'utf8')));
  });

  backendContract('rpm-ostree', { create: () => machines.create(), skip });
});
