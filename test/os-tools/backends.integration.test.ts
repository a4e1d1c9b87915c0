/** What all backends of a tool promise, by the stand-ins that were recorded from the tools. */
import { describe, expect, it } from 'vitest';
import { backendContract } from '../fixtures/backend-contract/contract.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { layerFile, noDirectoryNodes } from '../fixtures/test-node.ts';
import { composefsCases } from './composefs-cases.ts';
import { createComposefsNode } from './composefs-node.ts';
import { createToolNode } from './tool-node.ts';

if (noDirectoryNodes !== undefined) process.stderr.write(`skipped: ${noDirectoryNodes}\n`);
const skip = noDirectoryNodes !== undefined;

backendContract('bootc’s stand-in', { create: () => createToolNode('bootc'), skip });
backendContract('bootc’s stand-in, with composefs in place of ostree,', {
  create: createComposefsNode,
  skip,
  more: [composefsCases],
});
backendContract('rpm-ostree’s stand-in', { create: () => createToolNode('rpm-ostree'), skip });

describe.skipIf(skip).each(['bootc', 'rpm-ostree'] as const)('a pull by %s', (tool) => {
  it('tells how far it is while it goes on', { timeout: patience(120_000) }, async () => {
    await using node = await createToolNode(tool);
    const looked = Promise.withResolvers<void>();
    const backend = node.backendWith((run) => async (command, options) => {
      if (command[1] === 'switch' || command[1] === 'rebase') await looked.promise;
      return run(command, options);
    });
    const image = await node.addImage([layerFile('/etc/chrony.conf', 'whole\n')]);
    const told: number[] = [];
    const staged = await backend.stage(image, {
      extraKernelArguments: { remove: [], add: [] },
      onProgress: (done) => {
        told.push(done);
        if (told.length === 2) looked.resolve();
      },
      signal: deadline(120_000),
    });
    expect(staged.image).toBe(image);
    expect(told.slice(0, 2)).toEqual([0, 0]);
    expect(told.at(-1)).toBeGreaterThan(0);
  });

  it('that fails leaves what was staged before the next boot, with its kernel arguments', {
    timeout: patience(120_000),
  }, async () => {
    await using node = await createToolNode(tool);
    let isAway = false;
    const backend = node.backendWith((run) => async (command, options) => {
      if (isAway && (command[1] === 'switch' || command[1] === 'rebase')) throw new Error('no registry');
      return run(command, options);
    });
    const signal = deadline(120_000);
    const [live, next] = [
      await node.addImage([layerFile('/etc/chrony.conf', 'live\n')]),
      await node.addImage([layerFile('/etc/chrony.conf', 'next\n')]),
    ];
    await backend.stage(live, { extraKernelArguments: { remove: [], add: ['quiet'] }, signal });
    isAway = true;
    const fetching = backend.fetch(next, { extraKernelArguments: { remove: [], add: [] }, signal });
    await expect(fetching).rejects.toThrow('no registry');
    await node.shutDownAndBoot();
    const { booted } = await backend.status(signal);
    expect(booted.image).toBe(live);
    expect(booted.kernelArguments).toContain('quiet');
  });
});
