import { access, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { begun, image, into, powered, withFile } from '../../test/fixtures/powered-node.ts';
import { writeConfig } from '../../test/fixtures/standard-content.ts';
import { deployment, imageOf, observation, standard } from '../../test/fixtures/step-context.ts';
import { finishOrUndoWrite } from '../content/write/write-content.ts';
import { observe } from '../observe.ts';
import { nodeConfigOf, readCurrent, writeCurrent } from '../records/current.ts';
import { readStatePaths, writeManagedPaths } from '../records/managed-paths.ts';
import { writeTarget } from './disk-work.ts';
import { rebootInto } from './reboot.ts';

describe('a reboot in standard mode', () => {
  test('writes the config to the running root, and says that it did', async () => {
    const { context, done, read } = await powered();
    await expect(
      rebootInto(context, into(withFile('rendered-2', 'new', { baseImage: imageOf('0') })), observation()),
    ).rejects.toThrow();
    expect(await read('etc/app.conf')).toBe('new');
    expect(done).toEqual([expect.stringContaining('reboot: shale: update to rendered-2 in standard mode')]);
    expect(await context.journal.read()).toMatchObject({ step: 'rebooting' });
  });

  test('takes all of /etc along into a new deployment', async () => {
    const { context, done, handedOver, read, root } = await powered();
    await writeManagedPaths(root, new Map([['/etc/hosts', ['absent']]]));
    const next = withFile('rendered-2', 'new', { baseImage: imageOf('9') });
    await expect(rebootInto(context, into(next), observation())).rejects.toThrow();
    expect(await read('etc/app.conf')).toBe('new');
    // What ostree's merge left of it is not relied upon.
    expect(await read('staged/etc/app.conf')).toBe('new');
    expect(done.slice(0, 2)).toEqual([`stage ${imageOf('9')}`, 'finalize']);
    expect(handedOver.map((managed) => managed.size)).toEqual([0]);
  });

  test('on the way out of layering writes into the stock image alone', async () => {
    const { context, done, read, root } = await powered();
    await writeFile(path.join(root, 'etc/app.conf'), 'of the image');
    const next = {
      ...standard('rendered-2', [
        { path: '/etc/app.conf', content: 'new' },
        { path: '/var/app/seed', content: 'new' },
      ]),
      baseImage: imageOf('0'),
    };
    await expect(rebootInto(context, into(next), observation({ current: image }))).rejects.toThrow();
    expect(await read('etc/app.conf')).toBe('of the image');
    expect(await read('staged/etc/app.conf')).toBe('new');
    expect([...((await readStatePaths(root)) ?? new Map()).keys()]).toEqual(['/var/app/seed']);
    expect(done.slice(0, 2)).toEqual([`stage ${imageOf('0')}`, 'finalize']);
  });

  test('does not begin over a change that somebody else has made', async () => {
    const { context, done, read, root } = await powered();
    await writeFile(path.join(root, 'etc/app.conf'), 'by hand');
    const current = withFile('rendered-1', 'old');

    await expect(
      rebootInto(context, into(withFile('rendered-2', 'new')), observation({ current })),
    ).rejects.toThrow('/etc/app.conf');

    expect(await read('etc/app.conf')).toBe('by hand');
    expect(await context.journal.read()).toBeUndefined();
    expect(done).toEqual([]);
  });

  test('has the kernel arguments of its config, and records which the node had', async () => {
    const { context, root, asked } = await powered();
    const quiet = { kernelArguments: ['quiet'], baseImage: imageOf('0') };
    await writeFile(path.join(root, 'etc/app.conf'), 'old');
    const current = withFile('rendered-1', 'old', quiet);
    const drifted = observation({ current, kernelArguments: { entry: ['rw'] } });

    const next = withFile('rendered-2', 'new', quiet);
    await expect(rebootInto(context, into(next), drifted)).rejects.toThrow('aborted');

    expect(asked.map(({ extraKernelArguments }) => extraKernelArguments)).toEqual([
      { remove: [], add: ['quiet'] },
    ]);
    expect(await readCurrent(root)).toEqual({ ...current, kernelArguments: [] });
  });

  test('that lost power once its deployment was written still knows which arguments ran before', async () => {
    const { context, root, asked } = await powered();
    const baseImage = imageOf('0');
    await writeFile(path.join(root, 'etc/app.conf'), 'new');
    const current = withFile('rendered-1', 'old', { baseImage });
    const next = withFile('rendered-2', 'new', { baseImage, kernelArguments: ['quiet'] });
    const journal = { ...begun(into(next)), bootID: 'boot-0' };
    await context.journal.write(journal);
    await writeCurrent(root, current);
    const kernelArguments = { entry: ['rw', 'quiet'], added: ['quiet'] };

    await expect(
      rebootInto(context, into(next), observation({ current, journal, kernelArguments })),
    ).rejects.toThrow('aborted');

    expect(asked).toHaveLength(1);
    expect(await readCurrent(root)).toEqual(current);
  });

  test('that was begun before writes over whatever is there', async () => {
    const { context, read, root } = await powered();
    await writeFile(path.join(root, 'etc/app.conf'), 'half-way');
    const current = withFile('rendered-1', 'old');
    const next = withFile('rendered-2', 'new');
    const journal = begun(into(next));
    await context.journal.write(journal);
    await expect(rebootInto(context, into(next), observation({ current, journal }))).rejects.toThrow(
      'aborted',
    );
    expect(await read('etc/app.conf')).toBe('new');
  });

  test('in place of an update that was written and never finished leaves nothing of that behind, also when it is interrupted', async () => {
    const failures = [new Error('the host has no answer')];
    const booted = deployment('/booted', { image: imageOf('0') });
    const { context, root, read } = await powered({
      backend: {
        status: async () => {
          const failure = failures.pop();
          if (failure !== undefined) throw failure;
          return { booted };
        },
      },
    });
    const current = withFile('rendered-1', 'old');
    const started = standard('rendered-2', [{ path: '/etc/extra.conf', content: 'of rendered-2' }]);
    await writeConfig(
      writeTarget(context.ports),
      { from: emptyNodeConfig, to: nodeConfigOf(started.rendered) },
      { signal: context.signal },
    );
    await context.journal.write({ ...begun(into(started)), written: true });
    const update = into(withFile('rendered-3', 'newer'), { config: 'rendered-3' });
    const rebootNow = async () =>
      rebootInto(context, update, observation({ current, journal: await context.journal.read() }));

    await expect(rebootNow()).rejects.toThrow('no answer');
    await expect(rebootNow()).rejects.toThrow('aborted');

    expect(await read('etc/app.conf')).toBe('newer');
    await expect(access(path.join(root, 'etc/extra.conf'))).rejects.toThrow('ENOENT');
  });

  test('killed before the journal has its config as written, leaves nothing of that behind under another target', async () => {
    const passwords = new Map([['core', '*']]);
    const { context, root, read } = await powered({
      host: { kernelCommandLine: async () => undefined },
      backend: {
        status: async () => ({ booted: deployment('/booted', { image: imageOf('0') }) }),
        tool: async () => ({ name: 'ostree', installsPackages: false }),
      },
      ports: {
        setPasswords: async (_root, fields) => {
          for (const [user, field] of fields) passwords.set(user, field);
          await writeShadow(root, passwords);
        },
      },
    });
    const { ports, journal, memory, signal } = context;
    await writeFile(path.join(root, 'etc/passwd'), 'core:x:1000:1000::/var/home/core:/bin/sh\n');
    await writeShadow(root, passwords);
    const current = withFile('rendered-1', 'old');
    const first = { from: emptyNodeConfig, to: nodeConfigOf(current.rendered) };
    await writeConfig(writeTarget(ports), first, { signal });
    await writeCurrent(root, current);
    const started = withPassword(
      standard('rendered-2', [{ path: '/etc/extra.conf', content: 'of rendered-2' }]),
      '$6$of-rendered-2',
    );
    const killed: typeof journal = {
      ...journal,
      write: async (entry) => {
        if (entry.step === 'applying' && entry.written === true) throw new Error('killed');
        await journal.write(entry);
      },
    };
    await expect(
      rebootInto({ ...context, journal: killed }, into(started), observation({ current })),
    ).rejects.toThrow('killed');
    expect([await read('etc/extra.conf'), passwords.get('core')]).toEqual([
      'of rendered-2',
      '$6$of-rendered-2',
    ]);

    expect(await finishOrUndoWrite(writeTarget(ports))).toBe('nothing');
    const requested = {
      spec: observation().spec,
      generation: undefined,
      repair: undefined,
      retry: undefined,
      reboot: undefined,
      powerOff: undefined,
    };
    const observed = await observe(ports, journal, requested, memory, signal);
    const update = into(withFile('rendered-3', 'newer'), { config: 'rendered-3' });
    await expect(rebootInto(context, update, observed)).rejects.toThrow('aborted');

    expect(await read('etc/app.conf')).toBe('newer');
    await expect(access(path.join(root, 'etc/extra.conf'))).rejects.toThrow('ENOENT');
    expect(passwords.get('core')).toBe('*');
  });
});

function withPassword(current: ReturnType<typeof standard>, passwordHash: string): typeof current {
  const { rendered } = current;
  const config = { ...rendered.spec.config, passwd: { users: [{ name: 'core', passwordHash }] } };
  return { ...current, rendered: { ...rendered, spec: { ...rendered.spec, config } } };
}

function writeShadow(root: string, passwords: ReadonlyMap<string, string>): Promise<void> {
  const lines = [...passwords].map(([user, field]) => `${user}:${field}:19000::::::\n`);
  return writeFile(path.join(root, 'etc/shadow'), lines.join(''));
}
