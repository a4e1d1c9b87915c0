import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { PrepareRefused } from '../../daemon/records/current.ts';
import { CHRONY, type ContractBench } from '../fixtures/backend-contract/bench.ts';

/** What only holds where bootc keeps deployments in composefs, beside the contract of a backend. */
export function composefsCases(bench: ContractBench): void {
  const { stage, stageAndFinalize, fetching, file, read, inRoot, managedAt, signal } = bench;
  const bootedImage = async () => (await bench.node.backend.status(signal)).booted.image;

  it('boots no target that bootc has staged a moment before it was held back', async () => {
    const image = await bench.node.addImage([file(CHRONY, 'server a\n')]);
    const ending = bench.node.backendWith((run) => async (command, options) => {
      const output = await run(command, options);
      if (command[1] === 'switch') throw new Error('the daemon ended');
      return output;
    });
    await expect(ending.fetch(image, fetching)).rejects.toThrow('the daemon ended');
    expect((await bench.node.backend.status(signal)).staged).toBeUndefined();
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(bench.node.stock);
  });

  it('stages no image whose root would lose its /etc, and pulls it once', async () => {
    const configuration = file('/usr/lib/composefs/setup-root-conf.toml', '[etc]\ntransient = true\n');
    const image = await bench.node.addImage([configuration]);
    let pulls = 0;
    const counting = bench.node.backendWith((run) => (command, options) => {
      if (command[1] === 'switch') pulls += 1;
      return run(command, options);
    });
    for (const bring of [
      () => counting.fetch(image, fetching),
      () => counting.stage(image, fetching),
      () => counting.fetch(image, fetching),
    ]) {
      await expect(bring()).rejects.toThrow(PrepareRefused);
      await expect(bring()).rejects.toThrow('setup-root-conf.toml makes /etc transient');
      expect((await counting.status(signal)).staged).toBeUndefined();
      expect(bench.node.isHoldingBack()).toBe(true);
    }
    expect(pulls).toBe(1);
    const another = await bench.node.addImage([file(CHRONY, 'server a\n')]);
    await stage(another);
    expect(bench.node.isHoldingBack()).toBe(false);
    expect((await counting.status(signal)).staged?.image).toBe(another);
    await bench.node.backend.unstage(signal);
    await bench.node.backend.fetch(image, fetching).catch(() => undefined);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(bench.node.stock);
  });

  it('takes back an image with a unified kernel image, with which bootc would report nothing any more', async () => {
    const image = await bench.node.addImage([file('/boot/EFI/Linux/6.1.efi', 'kernel\n')]);
    for (const bring of [
      () => bench.node.backend.fetch(image, fetching),
      () => bench.node.backend.stage(image, fetching),
    ]) {
      await expect(bring()).rejects.toThrow(PrepareRefused);
      await expect(bring()).rejects.toThrow(/Conflicting boot types.*expected an image that boots/s);
      expect((await bench.node.backend.status(signal)).staged).toBeUndefined();
      expect(bench.node.isHoldingBack()).toBe(false);
    }
    const another = await bench.node.addImage([file(CHRONY, 'server a\n')]);
    await stageAndFinalize(bench.node.backend, another);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(another);
  });

  it('takes the former deployment without a download, with /etc merged from the running one', async () => {
    await writeFile(inRoot('/etc/hosts'), '10.0.0.1 old\n');
    await stageAndFinalize(bench.node.backend, await bench.node.addImage([file('/etc/new.conf', 'new\n')]));
    await bench.node.shutDownAndBoot();
    await writeFile(inRoot('/etc/hosts'), '10.0.0.2 edited since\n');
    await writeFile(inRoot(CHRONY), 'server shale\n');
    await writeFile(inRoot('/etc/added.conf'), 'added since\n');
    await rm(inRoot('/etc/nsswitch.conf'));
    const offline = bench.node.backendWith((run) => async (command, options) => {
      if (command[1] === 'switch') throw new Error('the registry is away');
      return run(command, options);
    });
    await offline.fetch(bench.node.stock, fetching);
    expect((await bench.node.backend.status(signal)).staged).toBeUndefined();
    await offline.stage(bench.node.stock, fetching);
    await offline.finalizeStaged(await managedAt(CHRONY), signal);
    expect((await bench.node.backend.status(signal)).staged?.image).toBe(bench.node.stock);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(bench.node.stock);
    expect(await read('/etc/hosts')).toBe('10.0.0.2 edited since\n');
    expect(await read(CHRONY)).toContain('pool.ntp.org');
    expect(await read('/etc/added.conf')).toBe('added since\n');
    expect(existsSync(inRoot('/etc/nsswitch.conf'))).toBe(false);
    expect(existsSync(inRoot('/etc/new.conf'))).toBe(false);
    expect(await read('/etc/hostname')).toBe('test\n');
  });

  it('merges /etc again where it has changed since, and still takes what Shale wrote for no edit', async () => {
    const image = await bench.node.addImage([file(CHRONY, 'image\n'), file('/etc/motd', 'image\n')]);
    await writeFile(inRoot(CHRONY), 'standard mode\n');
    await stage(image);
    const managed = await managedAt(CHRONY);
    const { root } = await bench.node.backend.finalizeStaged(managed, signal);
    // As the boot watchdog, which is put there again.
    await writeFile(`${root}/etc/of-the-first.conf`, '');
    await writeFile(inRoot('/etc/late.conf'), 'edited after it was finalized\n');
    await writeFile(inRoot('/etc/motd'), 'admin was here\n');
    await bench.node.backend.stage(image, fetching);
    await bench.node.backend.finalizeStaged(managed, signal);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(image);
    expect(await read(CHRONY)).toBe('image\n');
    expect(await read('/etc/late.conf')).toBe('edited after it was finalized\n');
    expect(await read('/etc/motd')).toBe('admin was here\n');
    expect(existsSync(inRoot('/etc/of-the-first.conf'))).toBe(false);
  });

  it('has a soft reboot take what is finalized with the same kernel and arguments, and nothing else', async () => {
    const { backend } = bench.node;
    const image = await bench.node.addImage([file(CHRONY, 'server a\n')]);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow('the booted deployment supports');
    expect((await backend.fetch(image, fetching)).canSoftReboot).toBe(true);
    expect((await stage(image)).canSoftReboot).toBe(true);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow('expected a finalized deployment');
    await backend.finalizeStaged(new Map(), signal);
    const isPrepared = () => existsSync(inRoot('/run/nextroot/usr'));
    await backend.prepareSoftReboot(signal);
    await backend.prepareSoftReboot(signal);
    expect(isPrepared()).toBe(true);
    await backend.unstage(signal);
    expect(isPrepared()).toBe(false);
    await stageAndFinalize(backend, image);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(image);
    const argument = file('/usr/lib/bootc/kargs.d/50-lab.toml', 'kargs = ["nosmt"]\n');
    await stageAndFinalize(backend, await bench.node.addImage([argument]));
    expect((await backend.status(signal)).staged?.canSoftReboot).toBeUndefined();
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow('expected a finalized deployment');
  });

  it('has the booted deployment be the next boot again, also after the other was finalized', async () => {
    const [first, second] = [
      await bench.node.addImage([file(CHRONY, '1\n')]),
      await bench.node.addImage([file(CHRONY, '2\n')]),
    ];
    await stageAndFinalize(bench.node.backend, first);
    await bench.node.backend.unstage(signal);
    expect((await bench.node.backend.status(signal)).staged).toBeUndefined();
    await bench.node.losePowerAndBoot();
    expect(await bootedImage()).toBe(bench.node.stock);
    // It is still there, and takes part in no pull.
    await bench.node.backend.fetch(second, fetching);
    await stage(first);
    expect(bench.node.isHoldingBack()).toBe(false);
    await bench.node.backend.finalizeStaged(new Map(), signal);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(first);
    expect(await read(CHRONY)).toBe('1\n');
  });

  it('has nothing else finalize, and goes back from what was finalized before a stop', async () => {
    const image = await bench.node.addImage([file(CHRONY, 'server a\n')]);
    await stage(image);
    const held: boolean[] = [];
    const ending = bench.node.backendWith((run) => async (command, options) => {
      if (command[1] !== 'composefs-finalize-staged') return run(command, options);
      held.push(bench.node.isHoldingBack());
      await run(command, options);
      throw new Error('the daemon ended');
    });
    await expect(ending.finalizeStaged(new Map(), signal)).rejects.toThrow('the daemon ended');
    expect(held).toEqual([true]);
    expect((await bench.node.backend.status(signal)).staged?.image).toBe(image);
    await bench.node.backend.unstage(signal);
    expect((await bench.node.backend.status(signal)).staged).toBeUndefined();
    expect(bench.node.isHoldingBack()).toBe(false);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(bench.node.stock);
  });

  it('rolls back over a target that is staged, and over one that is held back', async () => {
    const [first, second] = [
      await bench.node.addImage([file(CHRONY, '1\n')]),
      await bench.node.addImage([file(CHRONY, '2\n')]),
    ];
    await stageAndFinalize(bench.node.backend, first);
    await bench.node.shutDownAndBoot();
    await stage(second);
    await bench.node.backend.rollback(signal);
    await bench.node.backend.rollback(signal);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(bench.node.stock);
    await bench.node.backend.fetch(second, fetching);
    await bench.node.backend.rollback(signal);
    expect(bench.node.isHoldingBack()).toBe(false);
    await bench.node.losePowerAndBoot();
    expect(await bootedImage()).toBe(first);
  });

  it('finalizes what was finalized before a stop, and nothing that was fetched meanwhile', async () => {
    const [first, second] = [
      await bench.node.addImage([file(CHRONY, '1\n')]),
      await bench.node.addImage([file(CHRONY, '2\n')]),
    ];
    await stageAndFinalize(bench.node.backend, first);
    await bench.node.backend.fetch(second, fetching);
    expect((await bench.node.backend.status(signal)).staged?.image).toBe(first);
    await bench.node.backend.finalizeStaged(new Map(), signal);
    await bench.node.shutDownAndBoot();
    expect(await bootedImage()).toBe(first);
  });
}
