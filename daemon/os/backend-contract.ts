import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DigestedPullspec } from '../../api/references.ts';
import type { LayerItem } from '../../image/layer/layer-item.ts';
import { contentDigestAt } from '../records/managed-paths.ts';
import type { OsBackend, StageOptions } from './backend.ts';
import type { RunOsCommand } from './os-command.ts';

/** A booted machine of the sandbox's stock image, and the registry that it pulls from. */
export interface ContractNode extends AsyncDisposable {
  readonly root: string;
  readonly stock: DigestedPullspec;
  readonly backend: OsBackend;
  /** @param around put around the runner of commands. @returns another backend of the same machine. */
  backendWith(around: (run: RunOsCommand) => RunOsCommand): OsBackend;
  /** Makes an image of the stock layer and one more. */
  addImage(layer: readonly LayerItem[], labels?: Readonly<Record<string, string>>): Promise<DigestedPullspec>;
  /** A reboot that was asked for. */
  shutDownAndBoot(): Promise<void>;
  /** A reboot that comes without a shutdown. */
  losePowerAndBoot(): Promise<void>;
}

const CHRONY = '/etc/chrony.conf';
const HOST_ARGUMENTS = ['root=LABEL=root', 'rw', 'console=ttyS0'];
const STOCK_ARGUMENTS = ['quiet', 'systemd.unified_cgroup_hierarchy=1'];
const noExtra = { remove: [], add: [] };
/** Each command of a stand-in is a process of Node's. */
const TEST_MS = 120_000;

/**
 * What every backend does, on a real sysroot.
 *
 * @param name for the report. @param create a fresh machine for each test. @param skip where it can't run.
 */
export function backendContract(
  name: string,
  { create, skip }: { readonly create: () => Promise<ContractNode>; readonly skip: boolean },
): void {
  describe.skipIf(skip)(`${name} keeps the contract of a backend:`, { timeout: TEST_MS }, () => {
    let node: ContractNode;
    const signal = AbortSignal.timeout(600_000);
    const stage = (
      image: DigestedPullspec,
      extraKernelArguments: StageOptions['extraKernelArguments'] = noExtra,
    ) => node.backend.stage(image, { extraKernelArguments, signal });
    const inRoot = (place: string) => path.join(node.root, place);
    const read = (place: string) => readFile(inRoot(place), 'utf8');
    const file = (place: string, content: string): LayerItem => ({
      type: 'file',
      path: place,
      mode: 0o644,
      uid: 0,
      gid: 0,
      content: Buffer.from(content),
    });
    const managedAt = async (...places: readonly string[]) => {
      const managed = new Map<string, string>();
      for (const place of places) managed.set(place, await contentDigestAt(node.root, place));
      return managed;
    };

    beforeEach(async () => {
      node = await create();
    });
    afterEach(() => node[Symbol.asyncDispose]());

    it('tells what a fresh machine runs', async () => {
      const { booted, staged, rollback } = await node.backend.status(signal);
      expect(booted.image).toBe(node.stock);
      expect(booted.kernelArguments).toEqual([...HOST_ARGUMENTS, ...STOCK_ARGUMENTS]);
      expect([staged, rollback]).toEqual([undefined, undefined]);
    });

    it('boots a staged image with /etc merged, and keeps the former one to go back to', async () => {
      const image = await node.addImage([file(CHRONY, 'server a\n'), file('/etc/new.conf', 'new\n')], {
        a: 'b',
      });
      await writeFile(inRoot('/etc/hosts'), '10.0.0.1 db\n');
      const progress: number[] = [];
      const staged = await node.backend.stage(image, {
        extraKernelArguments: noExtra,
        signal,
        onProgress: (done, total) => progress.push(done / total),
      });
      expect(staged).toMatchObject({ image, labels: { a: 'b' } });
      expect((await node.backend.status(signal)).staged).toEqual(staged);
      expect(progress.at(-1)).toBe(1);
      await writeFile(inRoot('/etc/late.conf'), 'edited after staging\n');
      await node.backend.finalizeStaged(new Map(), signal);
      await node.shutDownAndBoot();

      const { booted, rollback } = await node.backend.status(signal);
      expect([booted.image, rollback?.image]).toEqual([image, node.stock]);
      expect(await read(CHRONY)).toBe('server a\n');
      expect(await read('/etc/hosts')).toBe('10.0.0.1 db\n');
      expect(await read('/etc/late.conf')).toBe('edited after staging\n');
      expect(await read('/etc/hostname')).toBe('test\n');

      await node.backend.rollback(signal);
      await node.backend.rollback(signal);
      await node.shutDownAndBoot();
      expect((await node.backend.status(signal)).booted.image).toBe(node.stock);
      expect(await read(CHRONY)).toContain('pool.ntp.org');
    });

    it('has the host itself go back, to the deployment as it was', async () => {
      // As in standard mode: the image that is left for has its own version, which ostree would carry along.
      await writeFile(inRoot(CHRONY), 'server shale\n');
      await writeFile(inRoot('/etc/added.conf'), 'shale\n');
      await writeFile(inRoot('/etc/hosts'), '10.0.0.1 db\n');
      const before = (await node.backend.status(signal)).booted;
      const keep = [CHRONY, '/etc/added.conf', '/etc/never.conf'];
      const image = await node.addImage([file(CHRONY, 'server a\n'), file('/etc/never.conf', 'new\n')]);
      await stage(image, { remove: [], add: ['quiet=2'] });
      await node.backend.finalizeStaged(await managedAt(...keep), signal);
      const wayBack = await node.backend.wayBack(keep, signal);
      await node.shutDownAndBoot();
      expect(await read(CHRONY)).toBe('server a\n');
      await writeFile(inRoot('/etc/late.conf'), 'edited\n');

      let runOnHost: RunOsCommand | undefined;
      node.backendWith((run) => {
        runOnHost = run;
        return run;
      });
      await runOnHost?.(['sh', '-c', `back() {\n${wayBack}\n}\nback`], { timeoutMs: TEST_MS, signal });
      await node.losePowerAndBoot();
      const { booted } = await node.backend.status(signal);
      expect(booted).toMatchObject({ image: before.image, kernelArguments: before.kernelArguments });
      expect(await read(CHRONY)).toBe('server shale\n');
      expect(await read('/etc/added.conf')).toBe('shale\n');
      expect(await read('/etc/hosts')).toBe('10.0.0.1 db\n');
      expect(existsSync(inRoot('/etc/never.conf'))).toBe(false);
    });

    it('has nothing to go back to on a fresh machine', async () => {
      await expect(node.backend.rollback(signal)).rejects.toThrow('no previous deployment');
    });

    it('does nothing when the image is staged or booted already', async () => {
      const image = await node.addImage([file(CHRONY, 'server a\n')]);
      const first = await stage(image);
      expect(await stage(image)).toEqual(first);
      const back = await stage(node.stock);
      const status = await node.backend.status(signal);
      expect(back).toEqual(status.booted);
      expect(status.staged).toBeUndefined();
    });

    it('makes a deployment of its own of the booted image when asked to', async () => {
      const options = { extraKernelArguments: noExtra, evenIfBooted: true, signal };
      const again = await node.backend.stage(node.stock, options);
      const { booted, staged } = await node.backend.status(signal);
      expect(again).toEqual(staged);
      expect(again).toMatchObject({ image: node.stock, kernelArguments: booted.kernelArguments });
      expect(again.id).not.toBe(booted.id);
    });

    it('takes back what is staged, and is content when nothing is', async () => {
      await node.backend.unstage(signal);
      await stage(await node.addImage([file(CHRONY, 'server a\n')]));
      await node.backend.unstage(signal);
      expect((await node.backend.status(signal)).staged).toBeUndefined();
      await node.shutDownAndBoot();
      expect((await node.backend.status(signal)).booted.image).toBe(node.stock);
    });

    it('replaces a staged image, merging /etc from the running one and not from the staged', async () => {
      await stage(await node.addImage([file('/etc/one.conf', '1\n')]));
      await stage(await node.addImage([file('/etc/two.conf', '2\n')]));
      await node.backend.finalizeStaged(new Map(), signal);
      await node.shutDownAndBoot();
      expect(existsSync(inRoot('/etc/one.conf'))).toBe(false);
      expect(await read('/etc/two.conf')).toBe('2\n');
    });

    it('takes the booted image’s kernel arguments away and keeps the host’s', async () => {
      const kargs = (value: string) => file('/usr/lib/bootc/kargs.d/50-shale.toml', `kargs = ["${value}"]\n`);
      const extra = { remove: [], add: ['extra=1', 'dyndbg="file a.c +p"'] };
      const first = await stage(await node.addImage([kargs('nosmt')]), extra);
      expect(first.kernelArguments.slice(-3)).toEqual(['nosmt', ...extra.add]);
      await node.backend.finalizeStaged(new Map(), signal);
      await node.shutDownAndBoot();
      const second = await stage(await node.addImage([kargs('hugepages=4')]), {
        remove: extra.add,
        add: [],
      });
      expect(second.kernelArguments).toEqual([...HOST_ARGUMENTS, ...STOCK_ARGUMENTS, 'hugepages=4']);
      await node.backend.finalizeStaged(new Map(), signal);
      await node.shutDownAndBoot();
      expect((await node.backend.status(signal)).booted.kernelArguments).toEqual(second.kernelArguments);
    });

    it('takes kernel arguments away when the next image has none at all', async () => {
      const { kernelArguments } = await stage(
        await node.addImage([{ type: 'whiteout', path: '/usr/lib/bootc/kargs.d/00-base.toml' }]),
      );
      expect(kernelArguments).toEqual(HOST_ARGUMENTS);
    });

    it('stages the same image anew for other kernel arguments', async () => {
      const { kernelArguments } = await stage(node.stock, { remove: [], add: ['extra=1'] });
      expect(kernelArguments).toEqual([...HOST_ARGUMENTS, ...STOCK_ARGUMENTS, 'extra=1']);
      expect((await node.backend.status(signal)).staged?.image).toBe(node.stock);
    });

    it('adds kernel arguments once, also when what was staged boots before anybody gave leave', async () => {
      const extra = { remove: [], add: ['extra=1', 'extra=1', 'extra=2'] };
      await stage(node.stock, extra);
      await node.shutDownAndBoot();
      const { booted } = await node.backend.status(signal);
      const wanted = [...HOST_ARGUMENTS, ...STOCK_ARGUMENTS, ...extra.add];
      expect(booted.kernelArguments).toEqual(wanted);
      // The update is still to be made, and nobody knows that its deployment runs.
      expect((await stage(node.stock, extra)).kernelArguments).toEqual(wanted);
      const other = await stage(node.stock, { remove: [], add: ['extra=3'] });
      expect(other.kernelArguments).toEqual([...HOST_ARGUMENTS, ...STOCK_ARGUMENTS, 'extra=3']);
      await node.backend.finalizeStaged(new Map(), signal);
      await node.losePowerAndBoot();
      const none = await stage(node.stock, { remove: ['extra=1'], add: [] });
      expect(none.kernelArguments).toEqual([...HOST_ARGUMENTS, ...STOCK_ARGUMENTS]);
    });

    it('does not let a file that Shale wrote shadow a later image, but lets an admin’s', async () => {
      await writeFile(inRoot(CHRONY), 'standard mode\n');
      await writeFile(inRoot('/etc/motd'), 'standard mode\n');
      await rm(inRoot('/etc/nsswitch.conf'));
      const managed = await managedAt(CHRONY, '/etc/motd', '/etc/nsswitch.conf');
      await writeFile(inRoot('/etc/motd'), 'admin was here\n');
      await stage(await node.addImage([file(CHRONY, 'image\n'), file('/etc/motd', 'image\n')]));
      await node.backend.finalizeStaged(managed, signal);
      await node.shutDownAndBoot();
      expect(await read(CHRONY)).toBe('image\n');
      expect(await read('/etc/motd')).toBe('admin was here\n');
      expect(await read('/etc/nsswitch.conf')).toContain('passwd: files');
    });

    it('removes a file that Shale wrote and the image does not have, with its directory', async () => {
      await mkdir(inRoot('/etc/own'));
      await chmod(inRoot('/etc/own'), 0o755);
      await writeFile(inRoot('/etc/own/x.conf'), 'standard mode\n');
      const managed = await managedAt('/etc/own', '/etc/own/x.conf');
      await stage(await node.addImage([file(CHRONY, 'image\n')]));
      await node.backend.finalizeStaged(managed, signal);
      await node.shutDownAndBoot();
      expect(existsSync(inRoot('/etc/own'))).toBe(false);
    });

    it('boots what was finalized also after a loss of power', async () => {
      const image = await node.addImage([file(CHRONY, 'server a\n')]);
      await stage(image);
      await writeFile(inRoot('/etc/late.conf'), 'edited after staging\n');
      await node.backend.finalizeStaged(new Map(), signal);
      await node.losePowerAndBoot();
      expect((await node.backend.status(signal)).booted.image).toBe(image);
      expect(await read('/etc/late.conf')).toBe('edited after staging\n');
    });

    it('can be finalized again after a stop in between', async () => {
      const image = await node.addImage([file(CHRONY, 'server a\n')]);
      await stage(image);
      await node.backend.finalizeStaged(new Map(), signal);
      const again = await node.backend.finalizeStaged(new Map(), signal);
      expect((await node.backend.status(signal)).staged).toEqual(again);
      expect(again.image).toBe(image);
      await node.backend.unstage(signal);
      await expect(node.backend.finalizeStaged(new Map(), signal)).rejects.toThrow('nothing is staged');
    });

    it('stages whole or not at all when it ends before any of its commands, and then stages again', async () => {
      let isOver = false;
      for (let commands = 0; !isOver; commands += 1) {
        const image = await node.addImage([file(CHRONY, `ended after ${commands}\n`)]);
        let left = commands;
        const ending = node.backendWith((run) => async (command, options) => {
          if (left === 0) throw new Error('ended');
          left -= 1;
          return run(command, options);
        });
        isOver = await stageAndFinalize(ending, image).then(
          () => true,
          () => false,
        );
        const { booted, staged } = await node.backend.status(signal);
        expect(booted.image).not.toBe(image);
        if (staged !== undefined) expect(staged.image).toBe(image);
        await stageAndFinalize(node.backend, image);
        await node.losePowerAndBoot();
        expect((await node.backend.status(signal)).booted.image).toBe(image);
        expect(await read(CHRONY)).toBe(`ended after ${commands}\n`);
      }
    });

    it('cleans up all but what runs, what was before and what is next', async () => {
      const build = (content: string) => node.addImage([file(CHRONY, content)], { content });
      const [one, two, three] = [await build('one\n'), await build('two\n'), await build('three\n')];
      for (const image of [one, two]) {
        await stageAndFinalize(node.backend, image);
        await node.shutDownAndBoot();
      }
      await node.backend.cleanup(signal);
      expect(await node.backend.status(signal)).toMatchObject({
        rollback: { image: one, labels: { content: 'one\n' } },
        booted: { image: two, labels: { content: 'two\n' } },
      });
      await stage(three);
      await node.backend.cleanup(signal);
      expect(await node.backend.status(signal)).toMatchObject({
        booted: { image: two, labels: { content: 'two\n' } },
        staged: { image: three, labels: { content: 'three\n' } },
      });
    });

    it('fetches only the layers that it does not have', async () => {
      const told: string[] = [];
      await node.backend.stage(await node.addImage([file(CHRONY, 'twelve bytes')]), {
        extraKernelArguments: noExtra,
        signal,
        onProgress: (done, total) => told.push(`${done} of ${total}`),
      });
      expect(told.at(-1)).toBe('12 of 12');
    });

    it('stages an image after it was given up in the middle of a command', async () => {
      const image = await node.addImage([file(CHRONY, 'whole\n')]);
      const stop = new AbortController();
      const pulling = node.backendWith((run) => (command, options) => {
        const running = run(command, options);
        if (/ (commit|switch|rebase) /.test(command.join(' '))) stop.abort(new Error('given up'));
        return running;
      });
      const options = { extraKernelArguments: noExtra, signal: stop.signal };
      await expect(pulling.stage(image, options)).rejects.toThrow('given up');
      expect((await node.backend.status(signal)).staged).toBeUndefined();
      expect((await stage(image)).image).toBe(image);
    });

    it('says which image there is not, and stages nothing', async () => {
      const missing = node.stock.replace(/[0-9a-f]{64}$/, 'f'.repeat(64)) as DigestedPullspec;
      await expect(stage(missing)).rejects.toThrow(missing);
      expect((await node.backend.status(signal)).staged).toBeUndefined();
    });

    async function stageAndFinalize(backend: OsBackend, image: DigestedPullspec): Promise<void> {
      await backend.stage(image, { extraKernelArguments: noExtra, signal });
      await backend.finalizeStaged(new Map(), signal);
    }
  });
}
